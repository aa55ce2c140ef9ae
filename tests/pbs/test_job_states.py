"""Recorded answers of qstat -> states and reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.pbs.jobs import node_list, read_json, read_text, report
from hpc_train.runs.run import JobState

ANSWERS = Path(__file__).parent / "answers"


def recorded(file: str) -> dict[str, dict[str, Any]]:
    found = read_json((ANSWERS / file).read_text())
    assert found is not None
    return found


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
    ((job, attributes),) = recorded(f"qstat-xf-{number}.json").items()
    found = report(job, attributes)
    assert (found.state, found.reason, found.job) == (state, reason, f"{number}.r2h1")


def test_active_jobs() -> None:
    found = {job: report(job, one) for job, one in recorded("qstat-f-live.json").items()}
    assert {job: (one.state, one.reason) for job, one in found.items()} == {
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
        ({"job_state": "F", "Exit_status": 0}, JobState.COMPLETED),
        ({"job_state": "F", "Exit_status": "0"}, JobState.COMPLETED),
        ({"job_state": "F", "Exit_status": -27}, JobState.OUT_OF_MEMORY),
        ({"job_state": "F", "Exit_status": 143, "substate": 91}, JobState.CANCELLED),
        ({"job_state": "F", "Exit_status": 143, "substate": 93}, JobState.FAILED),
        ({"job_state": "F", "Exit_status": -3}, JobState.FAILED),
        ({"job_state": "?"}, JobState.UNKNOWN),
        ({}, JobState.UNKNOWN),
    ],
)
def test_other_states(attributes: dict[str, Any], state: JobState) -> None:
    assert report("1.s", attributes).state is state


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (137, "signal 9"), (265, "signal 9"), (128, "exit code 128"), (256, "exit code 256"),
        (-3, "PBS ended it with -3"),
    ],
)  # fmt: skip
def test_an_exit_status_above_128_or_256_is_a_signal(code: int, reason: str) -> None:
    assert report("1.s", {"job_state": "F", "Exit_status": code}).reason == reason


def test_nodes_are_listed_once() -> None:
    assert node_list("n1/0*8+n2/0*8+n1/1") == "n1,n2"


def test_the_text_form_has_the_same_states() -> None:
    text = (
        "Job Id: 2.s\n    job_state = F\n    Exit_status = -29\n    comment = a very \n\tlong one"
    )
    text += "\n    Variable_List = A=1,HPCTRAIN_MARK=hpctrain:\n\tab,B=2\n\nJob Id: 3.s\n"
    found = read_text(text)
    assert report("2.s", found["2.s"]).state is JobState.TIMEOUT
    assert found["2.s"]["comment"] == "a very long one"
    assert found["2.s"]["Variable_List"] == "A=1,HPCTRAIN_MARK=hpctrain:ab,B=2"
    assert found["3.s"] == {}


def test_broken_json_is_none_and_other_lines_before_it_are_skipped() -> None:
    text = (ANSWERS / "qstat-unknown.txt").read_text()
    assert text.startswith("qstat: Unknown Job Id")
    assert read_json(text) == {}
    assert read_json(text[:-3]) is None
    assert read_json(json.dumps({"Jobs": []})) is None
    assert read_json("") is None
