"""The commands on a cluster: what users type, and what they can get wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Hpctrain
from tests.slurm.fake_slurm import FakeSlurm, programs

pytestmark = pytest.mark.process
JOB = "command: [python, -c, pass]\nlauncher: single\nresources: {cpus_per_task: 1, time: 1h}\n"
STUDY = (
    "name: digits\njob: {command: [python, -c, pass], launcher: single}\n"
    "axes: {env.X: [1, 2]}\nrepetitions: 2\nscaling: strong\n"
)
SITE = ("--site", "slurm-generic")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    make = programs(tmp_path / "bin", monkeypatch)
    return FakeSlurm(tmp_path / "slurm", make, monkeypatch)


@pytest.fixture
def hpctrain(slurm: FakeSlurm, hpctrain: Hpctrain, tmp_path: Path) -> Hpctrain:
    """Run `hpctrain` with the fake Slurm on PATH."""
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "study.yaml").write_text(STUDY)
    return hpctrain


@pytest.fixture
def run_id(hpctrain: Hpctrain) -> str:
    """Submit a job, which waits."""
    done = hpctrain("submit", "job.yaml", *SITE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refused(done: subprocess.CompletedProcess[str], *parts: str, code: int = 2) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


def test_a_study_from_submit_to_cancel(hpctrain: Hpctrain, slurm: FakeSlurm) -> None:
    done = hpctrain("submit", "study.yaml", *SITE)
    assert len(done.stdout.split()) == 4
    assert "results/digits: 4 runs submitted, 0 exist already" in done.stderr
    assert "hpctrain: cost: 4 runs without a time limit" in done.stderr
    slurm.becomes("1001_2", "FAILED", nodes="n1", reason="NonZeroExitCode")
    slurm.becomes("1002_1", "PENDING", start="2030-01-02T03:04:00", reason="Resources")
    table = hpctrain("status", "digits").stdout
    assert table.startswith("1 FAILED, 3 PENDING\n")
    assert "expected to start at 2030-01-02 03:04" in table
    found = json.loads(hpctrain("status", "digits", "--json").stdout)
    assert {run["job"] for run in found["runs"]} == {"1001_1", "1001_2", "1002_1", "1002_2"}
    again = hpctrain("retry", "digits", "--json")
    assert [run_id.endswith("-r2.2") for run_id in json.loads(again.stdout)["new"]] == [True]
    cancelled = hpctrain("cancel", "digits")
    assert cancelled.stdout.count("CANCELLED") == 4
    assert slurm.calls("scancel") == [["1001_1", "1002_1", "1002_2", "1003"]]
    assert hpctrain("status", "digits").stdout.startswith("4 CANCELLED\n")


def test_without_sbatch(hpctrain: Hpctrain) -> None:
    path = str(Path(sys.executable).parent)
    done = hpctrain("submit", "job.yaml", *SITE, PATH=path)
    refused(done, "slurm-generic: sbatch is not on PATH", "apt-get install slurm-client")
    assert not Path("results").exists()
    done = hpctrain("submit", "job.yaml", *SITE, "--dry-run", PATH=path)
    assert done.returncode == 0
    assert "#SBATCH --nodes=1" in done.stdout
    assert "sbatch is not installed here" in done.stderr


def test_cancel_names_what_it_leaves_behind(hpctrain: Hpctrain, slurm: FakeSlurm) -> None:
    left, *rest = sorted(hpctrain("submit", "study.yaml", *SITE).stdout.split())
    file = Path(f"results/digits/{left}/submission.json")
    # As it is while sbatch has not answered.
    answered = file.read_bytes()
    asked = {**json.loads(answered), "native_id": "", "comment": "hpctrain:other"}
    file.write_text(json.dumps(asked))
    done = hpctrain("cancel", "digits")
    refused(done, f"UNKNOWN    {left}  not cancelled: sbatch was called", code=3)
    assert done.stdout.split() == [word for run in rest for word in ("CANCELLED", run)]
    file.write_bytes(answered)


def test_watch_follows_to_the_end(hpctrain: Hpctrain, slurm: FakeSlurm, run_id: str) -> None:
    # The first answer is that it waits, the second that it ended.
    end = "sed -i s/PENDING/NODE_FAIL/ $S/queue"
    slurm.on("squeue", f"[ $n = 1 ] || {end}")
    done = hpctrain("status", run_id, "--watch")
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith(f"PENDING    {run_id}  ")
    assert last == f"NODE_FAIL  {run_id}  one of its nodes failed"


def test_inside_a_job_the_outer_one_is_named(
    hpctrain: Hpctrain, slurm: FakeSlurm, tmp_path: Path
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.touch()
    outer = {"SLURM_JOB_ID": "7", "PMI_RANK": "0", "SBATCH_WAIT": "1", "SLURM_CONF": str(conf)}
    done = hpctrain("submit", "job.yaml", *SITE, **outer)
    assert "this shell is inside Slurm job 7; 2 of its variables" in done.stderr
    assert "SBATCH_WAIT=1 is ignored" in done.stderr
    found = slurm.environment()
    assert not {"SLURM_JOB_ID", "PMI_RANK", "SBATCH_WAIT"} & found.keys()
    assert found["SLURM_CONF"] == str(conf)
    assert found["PATH"].split(os.pathsep)[1] == str(tmp_path / "bin")
