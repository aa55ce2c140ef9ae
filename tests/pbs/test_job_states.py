"""Recorded answers of qstat -> states and reasons."""

import os
from pathlib import Path

import pytest

from hpc_train.pbs.jobs import entries, job_reports, report
from hpc_train.runs.run import JobReport, JobState

ANSWERS = Path(__file__).parent / "answers"


RECORDED = entries((ANSWERS / "qstat-xf.txt").read_text(), "Job Id: ")


@pytest.mark.parametrize(
    ("number", "state", "reason"),
    [
        (2, JobState.TIMEOUT, "it exceeded its walltime"),
        (3, JobState.FAILED, "exit code 9"),
        (4, JobState.CANCELLED, "deleted by r2u@r2h1"),
        (5, JobState.CANCELLED, "deleted"),
        (6, JobState.FAILED, "signal 9"),
    ],
)
def test_ends(number: int, state: JobState, reason: str) -> None:
    job = f"{number}.r2h1"
    found = report(job, RECORDED[job])
    assert (found.state, found.reason, found.job) == (state, reason, job)


def test_active_jobs() -> None:
    found = {job: report(job, one) for job, one in RECORDED.items()}
    active = {job: one for job, one in found.items() if one.state.active}
    assert {job: (one.state, one.reason) for job, one in active.items()} == {
        "37.r2h1": (JobState.RUNNING, ""),
        "38.r2h1": (
            JobState.PENDING,
            "it can never run here: Insufficient amount of resource: ncpus (R: 64 A: 4 T: 4); "
            "cancel it, and request less",
        ),
        "39.r2h1": (JobState.PENDING, "it is held by its owner; qrls releases it"),
        "40.r2h1": (
            JobState.PENDING,
            "it can never run here: Not enough total nodes available; cancel it, and request less",
        ),
        "41[].r2h1": (JobState.RUNNING, ""),
    }
    assert (found["37.r2h1"].nodes, found["38.r2h1"].nodes) == ("r2h1", "")
    assert found["37.r2h1"].start is not None


@pytest.mark.parametrize(
    ("attributes", "state"),
    [
        ({"job_state": "W"}, JobState.PENDING),
        ({"job_state": "S"}, JobState.SUSPENDED),
        ({"job_state": "F", "Exit_status": "0"}, JobState.COMPLETED),
        ({"job_state": "F", "Exit_status": "-27"}, JobState.OUT_OF_MEMORY),
        ({"job_state": "F", "Exit_status": "143", "substate": "91"}, JobState.CANCELLED),
        ({"job_state": "F", "Exit_status": "143", "substate": "93"}, JobState.FAILED),
        ({"job_state": "F", "Exit_status": "-3"}, JobState.FAILED),
        ({"job_state": "?"}, JobState.UNKNOWN),
        ({}, JobState.UNKNOWN),
    ],
)
def test_other_states(attributes: dict[str, str], state: JobState) -> None:
    assert report("1.s", attributes).state is state


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (137, "signal 9"), (265, "signal 9"), (128, "exit code 128"), (256, "exit code 256"),
        (-3, "PBS ended it with -3"),
    ],
)  # fmt: skip
def test_an_exit_status_above_128_or_256_is_a_signal(code: int, reason: str) -> None:
    assert report("1.s", {"job_state": "F", "Exit_status": str(code)}).reason == reason


def test_a_long_value_continues_behind_a_tab() -> None:
    text = "Job Id: 2.s\n    comment = a very \n\tlong one\n    Variable_List = A=1,B=\n\tab\n\n"
    assert entries(f"{text}Job Id: 3.s\n", "Job Id: ") == {
        "2.s": {"comment": "a very long one", "Variable_List": "A=1,B=ab"},
        "3.s": {},
    }


def test_beside_an_error_of_the_server_an_unknown_job_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = "qstat: Unknown Job Id 1.s", "qstat: cannot connect to server t (errno=111)"
    program = tmp_path / "qstat"
    program.write_text(f"#!/bin/bash\nprintf '%s\\n' '{errors[0]}' '{errors[1]}' >&2\nexit 153\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = job_reports(("1.s", "2.t"), lambda why: JobReport(state=JobState.UNKNOWN, reason=why))
    assert {one.state for one in found.values()} == {JobState.UNKNOWN}


@pytest.mark.parametrize(
    ("letter", "holds", "by"), [("H", "n", ""), ("W", "uo", " by its owner and an operator")]
)
def test_a_job_waits_for_each_hold(letter: str, holds: str, by: str) -> None:
    reason = report("1.s", {"job_state": letter, "Hold_Types": holds, "comment": "later"}).reason
    assert reason == f"it is held{by}; qrls releases it"


def test_nodes_are_listed_once() -> None:
    attributes = {"job_state": "R", "exec_host": "n1/0*8+n2/0*8+n1/1"}
    assert report("1.s", attributes).nodes == "n1,n2"
