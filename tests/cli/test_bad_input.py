"""Everything a user can get wrong: one clear answer, exit code 2, nothing written."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cases import cases
from tests.conftest import Hpctrain

JOB = "command: [python, train.py]\nlauncher: single\nresources:\n  cpus_per_task: 1\n"
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
    ("words", "part"),
    cases("cli/wrong_commands.yaml", "a_wrong_command_line"),
)
def test_a_wrong_command_line(hpctrain: Hpctrain, words: list[str], part: str) -> None:
    refused(hpctrain(*words), part)


@pytest.mark.process
def test_a_study_in_which_some_fail_is_a_partial_result(hpctrain: Hpctrain) -> None:
    Path("train.py").write_text("import os; raise SystemExit(3 if os.environ['X'] == '1' else 0)")
    done = hpctrain("submit", "study.yaml", "--wait", "--set", "repetitions=1")
    assert done.returncode == 3
    report = hpctrain("report", "s")
    assert report.returncode == 3
    assert "FAILED" in report.stdout
    assert "Traceback" not in report.stderr


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
    assert "one.log: 1 line is truncated, overwritten or without a number" in done.stderr


@pytest.mark.process
def test_logs_of_a_study_asks_for_one_run(hpctrain: Hpctrain) -> None:
    hpctrain("submit", "study.yaml", "--wait", "--set", "repetitions=1")
    done = hpctrain("logs", "s")
    assert done.returncode == 2
    assert "name one run: " in done.stderr
