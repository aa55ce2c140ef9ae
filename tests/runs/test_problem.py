"""Problems: one sentence about a run, from whoever knows most."""

from pathlib import Path

import msgspec
import pytest

from hpc_train.runs.run import Failure, JobReport, JobState, JobStatus, Run, RunFolder, Submission
from hpc_train.runs.run_states import never_submitted, run_of
from tests.runs.test_run_state_and_reason import (
    BAD,
    CANCELLED,
    GONE,
    OK,
    RUNS,
    SUBMITTED,
    WAITS,
    judged,
)

CODE = JobStatus(started=1.0, ended=2.0, exit_code=3)
SLURM_SAYS = JobReport(state=JobState.NODE_FAIL, reason="one of its nodes failed")


@pytest.mark.parametrize(
    ("submission", "status", "report", "problem"),
    [
        (SUBMITTED, None, WAITS, ""),
        (SUBMITTED, RUNS, JobReport(state=JobState.RUNNING, reason="it is ending"), ""),
        (SUBMITTED, OK, None, ""),
        (SUBMITTED, OK, SLURM_SAYS, ""),
        (None, None, None, "it was never submitted"),
        (CANCELLED, None, None, "by you"),
        (CANCELLED, None, SLURM_SAYS, "by you"),
        (msgspec.structs.replace(CANCELLED, reason=""), None, None, "cancelled, not by hpctrain"),
        (msgspec.structs.replace(CANCELLED, state=JobState.COMPLETED), CODE, None,
         "exit code 3 before any rank failed; see logs/job.out"),
        (SUBMITTED, None, SLURM_SAYS, "one of its nodes failed"),
        (SUBMITTED, BAD, SLURM_SAYS, "one of its nodes failed"),
        (SUBMITTED, BAD, JobReport(state=JobState.FAILED, reason="exit code 3"),
         "rank 1 on h: exit code 3"),
        (SUBMITTED, CODE, GONE, "exit code 3 before any rank failed; see logs/job.out"),
        (SUBMITTED, None, JobReport(state=JobState.FAILED),
         "it ended before its script wrote any file"),
        (SUBMITTED, None, GONE, "it was started or queued, and no process of it is left"),
        (SUBMITTED, None, JobReport(state=JobState.CANCELLED), "cancelled, not by hpctrain"),
        (SUBMITTED, RUNS, JobReport(state=JobState.TIMEOUT), "the time limit was reached"),
        (SUBMITTED, None, JobReport(state=JobState.UNKNOWN, reason="no answer"), "no answer"),
        (SUBMITTED, None, None, ""),
    ],
)  # fmt: skip
def test_the_problem(
    submission: Submission | None,
    status: JobStatus | None,
    report: JobReport | None,
    problem: str,
) -> None:
    assert judged(submission, status, report).problem == problem


def test_a_rank_that_saved_asks_for_another_start() -> None:
    """A link of a chain of jobs: nothing queues it again."""
    failure = Failure(rank=0, host="h", exit_code=75)
    assert judged(SUBMITTED, msgspec.structs.replace(BAD, failure=failure), None).problem == (
        "rank 0 on h: exit code 75, which requests another start"
    )


def test_the_nodes_on_which_the_preflight_failed_are_named_before_its_record() -> None:
    failure = Failure(rank=None, host="n1", exit_code=1)
    status = msgspec.structs.replace(BAD, failure=failure, bad_nodes="n1,n3")
    assert judged(SUBMITTED, status, None).problem == "preflight: checks failed on n1, n3"


@pytest.mark.parametrize(
    ("submission", "status", "state", "logged", "said"),
    [
        (SUBMITTED, None, JobState.FAILED, False, True),
        (SUBMITTED, None, JobState.FAILED, True, False),
        (SUBMITTED, RUNS, JobState.FAILED, False, False),
        (SUBMITTED, None, JobState.TIMEOUT, False, False),
        (None, None, JobState.FAILED, False, False),
    ],
)
def test_a_failed_job_that_wrote_nothing_had_no_folder(
    submission: Submission | None,
    status: JobStatus | None,
    state: JobState,
    logged: bool,
    said: bool,
) -> None:
    folder = RunFolder(path=Path("r"))
    files = Run(folder=folder, manifest=None, submission=submission, status=status, logged=logged)
    problem = run_of(files, JobReport(state=state, reason="x")).problem
    assert (
        problem.startswith("r/logs contains no output of the run; the results must be on") is said
    )


def test_a_damaged_file_is_the_problem() -> None:
    files = Run(
        folder=RunFolder(path=Path("r")),
        manifest=None,
        submission=SUBMITTED,
        status=None,
        problem="run.json: damaged",
    )
    assert run_of(files, WAITS).problem == "run.json: damaged"


@pytest.mark.parametrize("name", ["status.json", "submission.json"])
def test_a_run_with_a_damaged_file_may_have_been_submitted(tmp_path: Path, name: str) -> None:
    run = Run(
        folder=RunFolder(path=tmp_path),
        manifest=None,
        submission=None,
        status=None,
        state=JobState.UNKNOWN,
    )
    assert never_submitted(run)
    (tmp_path / name).write_text("{")
    assert not never_submitted(run)


@pytest.mark.parametrize(
    ("status", "left", "said"),
    [(RUNS, b"", True), (RUNS, b'{"started": 1', True), (RUNS, b"{}\n", False), (BAD, b"", False)],
)
def test_a_disk_that_was_full_at_the_end_is_the_problem(
    tmp_path: Path, status: JobStatus, left: bytes, said: bool
) -> None:
    folder = RunFolder(path=tmp_path)
    (tmp_path / "status.json.new").write_bytes(left)
    files = Run(folder=folder, manifest=None, submission=SUBMITTED, status=status)
    for report in (GONE, JobReport(state=JobState.FAILED, reason="exit code 1")):
        problem = run_of(files, report).problem
        assert ("the disk was full" in problem) is said
        assert (str(tmp_path) in problem) is said
    assert run_of(files, JobReport(state=JobState.RUNNING)).problem == ""
