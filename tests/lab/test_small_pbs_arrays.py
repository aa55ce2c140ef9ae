"""Job arrays of the small PBS: indices, recorded shapes, limits, and what PBS refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.waiting import wait_for
from tests.small_pbs import RunningPbs, pbs

__all__ = ["pbs"]
RECORDED = Path(__file__).parents[1] / "submissions" / "pbs" / "answers" / "qstat-tf-array.json"
# Of the real PBS's own daemon.
DAEMON = {"session_id", "jobdir"}


def jobs(pbs: RunningPbs, *words: str) -> dict[str, Any]:
    done = pbs.command("qstat", *words, "-f", "-F", "json")
    found: dict[str, Any] = json.loads(done.stdout).get("Jobs", {})
    return found


def states(pbs: RunningPbs, *words: str) -> dict[str, str]:
    return {job: one["job_state"] for job, one in jobs(pbs, "-x", "-t", *words).items()}


def await_end(pbs: RunningPbs, name: str) -> None:
    wait_for(lambda: jobs(pbs, "-x", name)[name]["job_state"] == "F")


def test_subjobs_have_indices_and_files_of_their_own(pbs: RunningPbs) -> None:
    text = 'echo "$PBS_JOBID $PBS_ARRAY_INDEX $PBS_ARRAY_ID"'
    name = pbs.submit(text, "-J", "2-6:2", "-j", "oe", "-o", "out.^array_index^", "-N", "arr")
    assert name == "1[].pbs"
    await_end(pbs, name)
    for index in (2, 4, 6):
        assert (pbs.work / f"out.{index}").read_text() == f"1[{index}].pbs {index} 1[].pbs\n"
    other = pbs.submit("true", "-J", "1-2", "-N", "arr")
    await_end(pbs, other)
    names = {"arr.o2.1", "arr.o2.2"}
    assert {path.name for path in pbs.work.iterdir() if path.name.startswith("arr.")} == names


def test_the_attributes_are_those_of_a_recorded_array(pbs: RunningPbs) -> None:
    recorded = json.loads(RECORDED.read_text())["Jobs"]
    name = pbs.submit("exit $PBS_ARRAY_INDEX", "-J", "0-2", "-N", "arr", "-j", "oe", "-o", "o")
    await_end(pbs, name)
    found = jobs(pbs, "-x", "-t", name)
    assert list(found) == [name, "1[0].pbs", "1[1].pbs", "1[2].pbs"]
    for own, theirs in zip(found.values(), recorded.values(), strict=True):
        assert theirs.keys() - DAEMON - own.keys() == set()
        # What the recorded jobs do not have, because they had not ended.
        assert own.keys() - theirs.keys() <= {"obittime", "history_timestamp"}
        common = own.keys() & theirs.keys()
        assert {key: type(own[key]) for key in common} == {key: type(theirs[key]) for key in common}
    array = found[name]
    assert array["array_state_count"] == "Queued:0 Running:0 Exiting:0 Expired:3"
    assert (array["array_indices_submitted"], array["Exit_status"]) == ("0-2", 1)
    ends = [(one["job_state"], one["Exit_status"]) for one in found.values()]
    assert ends[1:] == [("X", 0), ("X", 1), ("X", 2)]
    assert {type(one["array_index"]) for one in list(found.values())[1:]} == {int}


def test_without_t_only_arrays_are_listed(pbs: RunningPbs) -> None:
    name = pbs.submit("sleep 300", "-J", "1-3")
    assert list(jobs(pbs, "-x")) == [name]
    assert pbs.command("qselect", "-x").stdout.split() == [name]
    assert list(jobs(pbs, "-x", "1[2].pbs")) == ["1[2].pbs"]


def test_as_many_run_at_once_as_the_limit_says(pbs: RunningPbs) -> None:
    name = pbs.submit("sleep 300", "-J", "1-3%1")
    wait_for(lambda: states(pbs, name)["1[1].pbs"] == "R")
    other = pbs.submit("true")
    # A later job starts and ends: the server has looked at the queue several times.
    await_end(pbs, other)
    assert [*states(pbs, name).values()] == ["B", "R", "Q", "Q"]
    assert jobs(pbs, name)[name]["max_run_subjobs"] == 1
    pbs.command("qdel", "1[1].pbs")
    wait_for(lambda: states(pbs, name)["1[2].pbs"] == "R")


def test_one_subjob_is_deleted_and_then_all(pbs: RunningPbs) -> None:
    name = pbs.submit("sleep 300", "-J", "1-3%1")
    wait_for(lambda: states(pbs, name)["1[1].pbs"] == "R")
    assert pbs.command("qdel", "1[3].pbs").returncode == 0
    deleted = jobs(pbs, "-t", name)["1[3].pbs"]
    assert (deleted["job_state"], deleted.get("Exit_status")) == ("X", None)
    again = pbs.command("qdel", "1[3].pbs")
    text = "qdel: Request invalid for finished array subjob 1[3].pbs\n"
    assert (again.returncode, again.stderr) == (55, text)
    assert pbs.command("qdel", name).returncode == 0
    await_end(pbs, name)
    found = jobs(pbs, "-x", "-t", name)
    ends = [(one["substate"], one.get("Exit_status")) for one in found.values()]
    assert ends[1:] == [(91, 271), (91, None), (91, None)]
    assert pbs.command("qdel", "1[1].pbs").stderr == "qdel: Job has finished 1[1].pbs\n"


def test_an_array_is_held_as_a_whole(pbs: RunningPbs) -> None:
    name = pbs.submit("true", "-J", "1-2", "-h")
    done = pbs.command("qrls", "1[1].pbs")
    assert (done.returncode, done.stderr) == (156, "qrls: Invalid request 1[1].pbs\n")
    found = jobs(pbs, "-t", name)
    assert [one["job_state"] for one in found.values()] == ["H", "Q", "Q"]
    assert {one["Hold_Types"] for one in found.values()} == {"u"}
    assert pbs.command("qrls", name).returncode == 0
    await_end(pbs, name)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-J", "1-1"], 2, "illegal -J value"),
        (["-J", "3-1"], 2, "illegal -J value"),
        (["-J", "2,4"], 2, "illegal -J value"),
        (["-J", "0-9:0"], 2, "illegal -J value"),
        (["-J", "0-9%0"], 2, "illegal -J value"),
        (["-J", "1-2", "-r", "n"], 2, "cannot submit non-rerunable Array Job"),
        (["-J", "0-10000"], 3, "Array job exceeds server or queue size limit"),
    ],
)
def test_arrays_that_a_real_qsub_refuses(
    pbs: RunningPbs, options: list[str], code: int, words: str
) -> None:
    done = pbs.command("qsub", *options, pbs.script("true"))
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"qsub: {words}\n"


def test_the_command_line_makes_an_array_rerunnable(pbs: RunningPbs) -> None:
    script = pbs.script("#PBS -r n\ntrue")
    assert pbs.command("qsub", "-J", "1-2", script).returncode == 2
    assert pbs.command("qsub", "-J", "1-2", "-r", "y", script).returncode == 0
