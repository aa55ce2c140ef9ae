"""Jobs whose id nobody wrote down are found again, or known not to exist, or left alone."""

from pathlib import Path

import pytest

from hpc_train.runs.run import JobReport, JobState, RunFolder, SlurmEndpoint
from hpc_train.slurm.executor import SlurmExecutor
from hpc_train.slurm.job_states import FIELD, RECORD
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.made import runs, submitted
from tests.submissions.on_slurm import says, submission

CLUSTER = SlurmEndpoint()


def queue(slurm: FakeSlurm, *entries: tuple[str, str, str]) -> None:
    """Put jobs (id, state, comment) into the queue."""
    lines = [
        FIELD.join((job, state, "N/A", "", "None", "j", comment)) for job, state, comment in entries
    ]
    (slurm.folder / "queue").write_text("".join(f"{line}{RECORD}\n" for line in lines))


def one(*made: RunFolder) -> dict[str, JobReport]:
    found = SlurmExecutor().search(CLUSTER, {run: submission(run) for run in made})
    return {run.run_id: report for run, report in found.items()}


def test_elements_of_an_array_are_told_apart(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1", "p-r2", "p-r11")
    for run, native_id in zip(made, ("_1", "_2", "_11"), strict=True):
        submitted(run, native_id, comment="hpctrain:a")
    queue(slurm, ("9_11", "RUNNING", "hpctrain:a"), ("9_[1-2]", "PENDING", "hpctrain:a"))
    found = one(*made)
    assert {run_id: (s.job, s.state) for run_id, s in found.items()} == {
        "p-r1": ("9_1", JobState.PENDING),
        "p-r2": ("9_2", JobState.PENDING),
        "p-r11": ("9_11", JobState.RUNNING),
    }
    assert len(slurm.calls("squeue")) == 1


@pytest.mark.parametrize(
    ("age_s", "state", "reason"),
    [
        (100, JobState.UNKNOWN, "sbatch was called 10"),
        (140, JobState.LOST, "Slurm never received it: sbatch was not answered"),
    ],
)
def test_without_a_job_its_age_decides(
    slurm: FakeSlurm, tmp_path: Path, age_s: float, state: JobState, reason: str
) -> None:
    (run,) = runs(tmp_path, "p-r1")
    submitted(run, "", comment="hpctrain:a", age_s=age_s)
    queue(slurm, ("7", "PENDING", "hpctrain:other"))
    report = one(run)["p-r1"]
    assert (report.state, report.job) == (state, "")
    assert report.reason.startswith(reason)


def test_a_job_that_said_its_id_itself_is_asked_for(slurm: FakeSlurm, tmp_path: Path) -> None:
    """The queue forgot it minutes ago, the accounting did not."""
    (run,) = runs(tmp_path, "p-r1")
    submitted(run, "", comment="hpctrain:a", age_s=1e4)
    says(run, job="4711")
    line = FIELD.join(("4711", "NODE_FAIL", "2026-11-21T01:00:00", "n1", "0:0", "None", "j"))
    slurm.on("sacct", f"echo '{line}'; exit")
    report = one(run)["p-r1"]
    assert (report.state, report.job) == (JobState.NODE_FAIL, "4711")
    says(run, job="4711", ended=1001.0, exit_code=3)
    slurm.on("sacct", "")
    report = one(run)["p-r1"]
    assert (report.state, report.job) == (JobState.LOST, "4711")


def test_a_status_without_an_id_says_nothing_of_the_job(slurm: FakeSlurm, tmp_path: Path) -> None:
    (run,) = runs(tmp_path, "p-r1")
    submitted(run, "", comment="hpctrain:a", age_s=1e4)
    says(run)
    assert one(run)["p-r1"].reason == "Slurm never received it: sbatch was not answered"
    assert slurm.calls("sacct") == []
