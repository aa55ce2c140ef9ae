"""sacct: what a real one printed, with and without accounting."""

import logging
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hpc_train.runs.run import JobState, SlurmEndpoint
from hpc_train.slurm.job_states import FIELD, parse_accounting, sacct
from tests.slurm.fake_slurm import FakeSlurm

ANSWERS = Path(__file__).parent / "answers"
ENDED = (ANSWERS / "sacct.txt").read_text()


def test_how_jobs_ended(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = {entry.job: entry.report for entry in parse_accounting(ENDED)}
    assert {job: (report.state, report.reason) for job, report in found.items()} == {
        "67": (JobState.TIMEOUT, "it reached its time limit"),
        "145": (JobState.CANCELLED, "cancelled by user id 0"),
        "228_1": (JobState.CANCELLED, "cancelled by user id 0"),
        "228_5": (JobState.CANCELLED, "cancelled by user id 0"),
        "228_7": (JobState.CANCELLED, "cancelled by user id 0"),
        "228_9": (JobState.CANCELLED, "cancelled by user id 0"),
        "248": (JobState.CANCELLED, "cancelled by user id 0"),
        "249_1": (JobState.COMPLETED, ""),
        "249_5": (JobState.COMPLETED, ""),
        "249_7": (JobState.CANCELLED, "cancelled by user id 0"),
        "249_9": (JobState.CANCELLED, "cancelled by user id 0"),
        "250": (JobState.FAILED, "exit code 7"),
        "251": (JobState.FAILED, "signal 9"),
        "252": (
            JobState.FAILED,
            "it could not be started, most often because its log cannot be written",
        ),
        "253": (JobState.CANCELLED, "cancelled by user id 0"),
        "254": (JobState.CANCELLED, "cancelled by user id 0"),
        "255": (JobState.CANCELLED, "cancelled by user id 0"),
        "258": (JobState.COMPLETED, ""),
        "259": (JobState.PREEMPTED, "a job of higher priority preempted it"),
        "261": (JobState.COMPLETED, ""),
        "262": (JobState.CANCELLED, "cancelled by user id 0"),
        "263": (JobState.NODE_FAIL, "one of its nodes failed"),
    }
    # The second half of a job name with a line end in it.
    assert "'odd name'" in caplog.text


def test_the_element_that_ran_is_not_the_rest_of_its_array() -> None:
    found = {entry.job: entry.report for entry in parse_accounting(ENDED)}
    assert found["249_7"].nodes == "lab4"
    assert found["249_9"].nodes == ""
    swapped = "\n".join(reversed(ENDED.splitlines()))
    assert {entry.job: entry.report for entry in parse_accounting(swapped)}["249_7"].nodes == "lab4"


@given(st.lists(st.one_of(st.text(max_size=9), st.sampled_from([FIELD, "7_[1-3]", "\n"]))))
def test_no_text_breaks_it(pieces: list[str]) -> None:
    for entry in parse_accounting("".join(pieces)):
        assert entry.job[0].isdecimal()


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("Slurm accounting storage is disabled", "Slurm accounting storage is disabled"),
        (
            "sacct: error: Sending PersistInit msg: Connection refused\n"
            "sacct: error: Problem talking to the database: Connection refused",
            "Problem talking to the database: Connection refused",
        ),
    ],
)
def test_no_accounting_is_a_failure(slurm: FakeSlurm, said: str, failure: str) -> None:
    slurm.on("sacct", f"echo '{said}' >&2; exit 1")
    assert sacct(SlurmEndpoint(), ["7"], "2026-11-21").failure == failure


def test_a_database_that_drops_the_line_is_a_failure_though_sacct_ends_with_0(
    slurm: FakeSlurm,
) -> None:
    slurm.on("sacct", "echo 'sacct: error: DBD_GET_JOBS_COND failure: Unspecified error' >&2; exit")
    failure = sacct(SlurmEndpoint(), ["7"], "2026-11-21").failure
    assert failure == "DBD_GET_JOBS_COND failure: Unspecified error"


def test_the_words_of_the_question(slurm: FakeSlurm) -> None:
    slurm.on("sacct", f"cat {ANSWERS}/sacct.txt; exit")
    answer = sacct(SlurmEndpoint(), ["249_7", "249_9", "250", "777"], "2026-11-01")
    assert [entry.job for entry in answer.entries] == ["250", "249_7", "249_9"]
    (words,) = slurm.calls("sacct")
    assert "--jobs=249,250,777" in words
    assert "--starttime=2026-10-31" in words
    assert sacct(SlurmEndpoint(), [], "2026-11-01").entries == ()
