"""States: each word of Slurm has a meaning, no unknown one looks like an end; turns of runs."""

import pytest

from hpc_train.runs.run import JobReport, JobState, JobStatus
from hpc_train.runs.run_states import decide, is_settled, job_state, nested_report

# man squeue and man sacct 22.05, JOB STATE CODES.
MANUAL = (
    "BOOT_FAIL CANCELLED COMPLETED CONFIGURING COMPLETING DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY "
    "PENDING PREEMPTED RUNNING RESV_DEL_HOLD REQUEUE_FED REQUEUE_HOLD REQUEUED RESIZING REVOKED "
    "SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED SUSPENDED TIMEOUT"
).split()
# Flags that libslurm can print beside them, and one of 25.11.
FLAGS = ["LAUNCH_FAILED", "UPDATE_DB", "POWER_UP_NODE", "RECONFIG_FAIL", "EXPEDITING"]


# What the manual says of each, in the words of a JobState.
MEANINGS = {
    JobState.PENDING: "PENDING CONFIGURING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD "
    "SPECIAL_EXIT POWER_UP_NODE EXPEDITING",
    JobState.RUNNING: "RUNNING COMPLETING RESIZING SIGNALING STAGE_OUT",
    JobState.SUSPENDED: "SUSPENDED STOPPED",
    JobState.COMPLETED: "COMPLETED",
    JobState.FAILED: "FAILED",
    JobState.CANCELLED: "CANCELLED",
    JobState.TIMEOUT: "TIMEOUT DEADLINE",
    JobState.NODE_FAIL: "NODE_FAIL BOOT_FAIL",
    JobState.PREEMPTED: "PREEMPTED",
    JobState.OUT_OF_MEMORY: "OUT_OF_MEMORY",
    JobState.UNKNOWN: "REVOKED LAUNCH_FAILED RECONFIG_FAIL UPDATE_DB",
}


def test_the_meaning_of_every_word() -> None:
    meant = {word: state for state, words in MEANINGS.items() for word in words.split()}
    assert {word: job_state(word)[0] for word in [*MANUAL, *FLAGS]} == meant


@pytest.mark.parametrize("word", ["", " ", "HIBERNATING", "completed", "COMPLET+", "\N{SNOWMAN}"])
def test_an_unknown_word_is_unknown_and_named(word: str) -> None:
    state, said = job_state(word)
    assert state is JobState.UNKNOWN
    assert repr(word.strip()) in said


@pytest.mark.parametrize(
    ("word", "state", "said"),
    [
        ("CANCELLED", JobState.CANCELLED, ""),
        ("CANCELLED by 1000", JobState.CANCELLED, "cancelled by user id 1000"),
        ("COMPLETING", JobState.RUNNING, "it is ending"),
        ("CONFIGURING", JobState.PENDING, "its nodes are being prepared"),
        ("STOPPED", JobState.SUSPENDED, "it was stopped and keeps its nodes"),
        ("DEADLINE", JobState.TIMEOUT, "its deadline passed before it could end"),
    ],
)
def test_words_and_their_sentences(word: str, state: JobState, said: str) -> None:
    assert job_state(word) == (state, said)


BEGUN = JobStatus(started=1000.0)
ENDED = JobStatus(started=1000.0, ended=1010.0, exit_code=3)


def allocation(state: JobState, start: float | None = 990.0, reason: str = "") -> JobReport:
    return JobReport(state=state, job="7", start=start, nodes="n[1-4]", reason=reason)


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [
        (JobState.PENDING, None, JobState.PENDING),
        (JobState.RUNNING, None, JobState.PENDING),
        (JobState.RUNNING, BEGUN, JobState.RUNNING),
        (JobState.RUNNING, ENDED, None),
        (JobState.SUSPENDED, None, JobState.SUSPENDED),
        (JobState.SUSPENDED, BEGUN, JobState.SUSPENDED),
        (JobState.COMPLETED, ENDED, None),
        (JobState.COMPLETED, None, JobState.LOST),
        (JobState.TIMEOUT, BEGUN, JobState.TIMEOUT),
        (JobState.TIMEOUT, None, JobState.LOST),
        (JobState.CANCELLED, None, JobState.LOST),
        (JobState.NODE_FAIL, BEGUN, JobState.NODE_FAIL),
        (JobState.UNKNOWN, None, JobState.UNKNOWN),
        (JobState.UNKNOWN, BEGUN, JobState.UNKNOWN),
        (JobState.UNKNOWN, ENDED, None),
        (JobState.LOST, BEGUN, JobState.LOST),
        (JobState.LOST, ENDED, None),
    ],
)
def test_a_turn(state: JobState, status: JobStatus | None, expected: JobState | None) -> None:
    found = nested_report(status, False, allocation(state))
    assert (found.state if found else None) is expected


def test_a_run_of_an_allocation_that_is_queued_again_waits_with_it() -> None:
    waits = allocation(
        JobState.PENDING, start=None, reason="jobs of higher priority are scheduled first"
    )
    assert nested_report(ENDED, False, waits) == waits


def test_a_turn_that_has_not_come_says_so() -> None:
    waits = nested_report(None, False, allocation(JobState.RUNNING))
    assert waits is not None
    assert waits.reason == "it waits for earlier runs in the allocation, job 7"
    assert (waits.start, waits.job) == (None, "7"), "it is not expected at the allocation's start"
    lost = nested_report(None, False, allocation(JobState.TIMEOUT))
    assert lost is not None
    assert lost.reason == "its allocation, job 7, ended (TIMEOUT) before it started"


def test_a_run_that_was_cut_off_shares_its_allocations_end() -> None:
    found = nested_report(ENDED, True, allocation(JobState.CANCELLED))
    assert found is not None
    assert found.state is JobState.CANCELLED
    assert found.reason == "its allocation, job 7, ended while it was running"
    assert nested_report(ENDED, True, allocation(JobState.RUNNING)) is None


def test_an_allocation_that_could_not_start_fails_its_runs() -> None:
    """Were they lost, each submission would try them again."""
    found = nested_report(
        None, False, allocation(JobState.FAILED, reason="it could not be started")
    )
    assert found is not None
    assert found.state is JobState.FAILED
    assert found.reason.endswith("ended (FAILED) before it started: it could not be started")


def test_what_is_settled_needs_no_scheduler() -> None:
    """Only a scheduler that still has the job may change what `is_settled` calls final."""
    over = JobStatus(started=1.0, ended=2.0, exit_code=0)
    assert is_settled(over, None)
    assert not is_settled(ENDED, None)
    assert {decide(allocation(state), over, None) for state in JobState if not state.active} == {
        JobState.COMPLETED
    }
