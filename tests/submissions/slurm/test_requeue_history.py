"""A requeued job: the accounting has the end of its previous attempt."""

from __future__ import annotations

import pytest

from hpc_train.model.submission import JobReport, SlurmEndpoint
from hpc_train.submissions.slurm.job_states import job_reports
from hpc_train.submissions.slurm.squeue import FIELD, RECORD
from tests.submissions.slurm.fake_slurm import FakeSlurm, option

SINCE = "2026-11-20"
WAITS = "its start time has not been reached: it was requested, or the job was requeued"


def queued(slurm: FakeSlurm, *jobs: tuple[str, str]) -> None:
    lines = [FIELD.join((job, "PENDING", "N/A", "", why, "j", "")) for job, why in jobs]
    (slurm.folder / "queue").write_text("".join(f"{line}{RECORD}\n" for line in lines))


def attempts(slurm: FakeSlurm, *rows: tuple[str, str, str, str]) -> None:
    text = "\n".join(FIELD.join(row) for row in rows)
    slurm.on("sacct", f"echo '{text}'; exit")


def ask(*jobs: str) -> dict[str, JobReport]:
    return job_reports(SlurmEndpoint(), dict.fromkeys(jobs, ""), SINCE)


@pytest.mark.parametrize(
    ("state", "meaning"),
    [
        ("NODE_FAIL", "one of its nodes failed"),
        ("PREEMPTED", "a job of higher priority preempted it"),
        ("REQUEUED", "it was requeued"),
        ("CANCELLED by 7", "cancelled by user id 7"),
        ("FAILED", "it ended as FAILED"),
    ],
)
def test_the_end_of_the_last_attempt_is_named(slurm: FakeSlurm, state: str, meaning: str) -> None:
    queued(slurm, ("5", "BeginTime"))
    attempts(
        slurm,
        ("5", state, "2026-11-21T03:00:00", "n[1-2]"),
        ("5", "NODE_FAIL", "2026-11-21T02:00:00", "n9"),
        ("5", "PENDING", "Unknown", "None assigned"),
    )
    reason = ask("5")["5"].reason
    assert reason == f"it ran on n[1-2] until 2026-11-21 03:00:00, when {meaning}; {WAITS}"
    (argv,) = slurm.calls("sacct")
    assert "--duplicates" in argv
    assert (option(argv, "jobs"), option(argv, "starttime")) == ("5", "2026-11-19")


def test_a_job_that_never_ran_has_no_history(slurm: FakeSlurm) -> None:
    queued(slurm, ("5", "BeginTime"), ("6_2", "BeginTime"))
    attempts(
        slurm,
        ("5", "PENDING", "Unknown", "None assigned"),
        ("5", "CANCELLED by 0", "2026-11-21T02:00:00", "None assigned"),
        ("6_2", "NODE_FAIL", "2026-11-21T02:00:00", "n3"),
        ("not a job", "NODE_FAIL", "2026-11-21T02:00:00", "n3"),
    )
    found = ask("5", "6_2")
    assert found["5"].reason == WAITS
    assert found["6_2"].reason.startswith("it ran on n3 until ")


def test_without_accounting_the_reason_stays(slurm: FakeSlurm) -> None:
    queued(slurm, ("5", "BeginTime"))
    assert ask("5")["5"].reason == WAITS


def test_other_jobs_are_not_asked_for(slurm: FakeSlurm) -> None:
    queued(slurm, ("5", "Priority"), ("6", "BeginTime"))
    ask("5", "6")
    (argv,) = slurm.calls("sacct")
    assert option(argv, "jobs") == "6"
