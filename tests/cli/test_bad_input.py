"""Everything a user can get wrong: one clear answer, exit code 2, nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import cases

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
JOB = "command: [python, train.py]\nlauncher: single\nresources:\n  cpus_per_task: 1\n"
SLURM = ("--site", "slurm-generic")
STUDY = (
    "name: s\njob: {command: [python, train.py], launcher: single}\n"
    "axes:\n  env.X: [1, 2]\nscaling: strong\n"
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, hpctrain: Hpctrain) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "empty").mkdir()


def refused(done: subprocess.CompletedProcess[str], *parts: str, code: int = 2) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (JOB + "lancher: x\n", ["job.yaml:5: unknown key 'lancher'; did you mean 'launcher'?"]),
        (JOB + "  nodes: 0\n", ["job.yaml:5: resources.nodes: must be a whole number from 1"]),
        (JOB + "  time: 1.5h\n", ["job.yaml:5: resources.time: '1.5h' is not a time; write 1h30m"]),
        (JOB.replace("single", "srun"), ["local forbids srun: there is no Slurm"]),
        ("command: [python, train.py\n", ["job.yaml:2: not valid YAML"]),
        (
            JOB.replace("train.py", "trian.py"),
            ["trian.py does not exist; did you mean 'train.py'?"],
        ),
        (JOB.replace("python, train.py", "pyhton"), ["'pyhton' is not on PATH"]),
        (
            JOB + "env: {HF_TOKEN: hush-hush}\n",
            ["env.HF_TOKEN looks like a secret", "export HF_TOKEN"],
        ),
    ],
)
def test_a_wrong_job_file(hpctrain: Hpctrain, text: str, parts: list[str]) -> None:
    Path("job.yaml").write_text(text)
    refused(hpctrain("submit", "job.yaml"), *parts)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (STUDY.replace("env.X", "nodez"), "study.yaml:4: 'nodez' is not a key of a job"),
        (
            STUDY + "baseline: {env.X: 3}\n",
            "the baseline env.X=3 is not in the grid; env.X has 1, 2",
        ),
        (STUDY + "placement: nested\n", "placement nested needs one allocation"),
        (STUDY.replace("{command", "nojob.yaml # {command"), "nojob.yaml: No such file"),
    ],
)
def test_a_wrong_study_file(hpctrain: Hpctrain, text: str, part: str) -> None:
    Path("study.yaml").write_text(text)
    refused(hpctrain("submit", "study.yaml"), part)


@pytest.mark.parametrize(
    ("words", "part"),
    cases("cli/wrong_commands.yaml", "a_wrong_command_line"),
)
def test_a_wrong_command_line(hpctrain: Hpctrain, words: list[str], part: str) -> None:
    refused(hpctrain(*words), part)


@pytest.mark.process
def test_a_command_that_exits_3(hpctrain: Hpctrain) -> None:
    Path("train.py").write_text("print('last words'); raise SystemExit(3)")
    done = hpctrain("submit", "job.yaml", "--wait")
    assert done.returncode == 1
    assert "FAILED" in done.stderr
    assert "rank 0 on" in done.stderr
    assert "exit code 3" in done.stderr
    assert "rank-0.out: last words" in done.stderr


@pytest.mark.process
def test_a_study_in_which_some_fail_is_a_partial_result(hpctrain: Hpctrain) -> None:
    Path("train.py").write_text("import os; raise SystemExit(3 if os.environ['X'] == '1' else 0)")
    done = hpctrain("submit", "study.yaml", "--wait", "--set", "repetitions=1")
    assert done.returncode == 3
    report = hpctrain("report", "s")
    assert report.returncode == 3
    assert "FAILED" in report.stdout
    assert "Traceback" not in report.stderr


@pytest.mark.process
def test_a_run_that_printed_no_measurement_is_a_partial_result(hpctrain: Hpctrain) -> None:
    hpctrain("submit", "job.yaml", "--wait")
    done = hpctrain("report", "job")
    assert (done.returncode, "No run has a result" in done.stdout) == (3, True)


@pytest.mark.process
def test_a_damaged_manifest_is_named_in_the_report(hpctrain: Hpctrain) -> None:
    ids = hpctrain("submit", "study.yaml", "--wait", "--set", "repetitions=1").stdout.split()
    manifest = Path("results/s") / ids[0] / "run.json"
    manifest.write_bytes(manifest.read_bytes()[:100])
    assert f"{ids[0]}: run.json: damaged" in hpctrain("report", "s", "-f", "markdown").stdout


def test_a_lock_that_cannot_be_opened_is_refused_at_once(
    hpctrain: Hpctrain, tmp_path: Path
) -> None:
    (tmp_path / f"hpctrain-{os.getuid()}.lock").symlink_to("elsewhere")
    done = hpctrain("submit", "job.yaml")
    refused(done, "cannot be opened", "set TMPDIR to a folder of your own", code=1)


def test_absurd_numbers_in_a_log_stop_nothing(hpctrain: Hpctrain) -> None:
    lines = [f'@hpct {{"step": {10**20}, "step_time": 0.1, "samples": 2}}\n']
    lines += [f'@hpct {{"step": {i}, "step_time": 0.1, "samples": 2}}\n' for i in range(40)]
    lines += ['@hpct {"step": 41, "step_time": NaN, "samples": 2}\n']
    Path("one.log").write_text("".join(lines))
    done = hpctrain("report", "one.log")
    assert "Traceback" not in done.stderr
    assert "20.00" in done.stdout
    assert "one.log: 1 line is cut, written over or without a number" in done.stderr


@pytest.mark.process
def test_output_that_cannot_be_written_has_no_traceback(hpctrain: Hpctrain) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hpc_train", "render", "train.py", "--site", "local"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    advice = "free some space, or write to another place; df -h prints what is free"
    message = f"hpctrain: output: No space left on device\n  {advice}\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.process
def test_a_manifest_cut_in_half_is_shown(hpctrain: Hpctrain) -> None:
    run_id = hpctrain("submit", "job.yaml", "--wait").stdout.strip()
    manifest = Path("results/job") / run_id / "run.json"
    manifest.write_bytes(manifest.read_bytes()[:100])
    for words in (["status", "job"], ["status"], ["logs", run_id], ["report", "job"]):
        done = hpctrain(*words)
        assert "Traceback" not in done.stderr, done.stderr
        assert run_id in done.stdout or "job" in done.stdout or "hello" in done.stdout
    assert "run.json: damaged" in hpctrain("status", "job").stdout


@pytest.mark.process
def test_logs_of_a_study_asks_for_one_run(hpctrain: Hpctrain) -> None:
    hpctrain("submit", "study.yaml", "--wait", "--set", "repetitions=1")
    done = hpctrain("logs", "s")
    assert done.returncode == 2
    assert "name one run: " in done.stderr
