"""The small PBS: it runs scripts as PBS does, answers in recorded shapes, and refuses the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.errors import LabError
from hpc_train.lab.pbs import small_pbs
from hpc_train.lab.pbs.placement import NodeSize
from tests.pipeline.waiting import wait_for
from tests.small_pbs import RunningPbs, pbs

__all__ = ["pbs"]
RECORDED = Path(__file__).parents[1] / "submissions" / "pbs" / "answers"


def job(pbs: RunningPbs, name: str) -> dict[str, Any]:
    done = pbs.command("qstat", "-x", "-f", "-F", "json", name)
    found: dict[str, Any] = json.loads(done.stdout)["Jobs"][name]
    return found


def await_end(pbs: RunningPbs, name: str) -> dict[str, Any]:
    wait_for(lambda: job(pbs, name)["job_state"] == "F")
    return job(pbs, name)


def test_a_job_starts_at_home_with_the_variables_of_pbs(pbs: RunningPbs) -> None:
    words = "$PWD $PBS_O_WORKDIR $PBS_JOBID $PBS_JOBNAME $PBS_QUEUE $NCPUS $OMP_NUM_THREADS"
    name = pbs.submit(
        f'echo "{words} [$MINE] [$SHELL_ONLY]"; sort -u "$PBS_NODEFILE"',
        *("-N", "mine", "-l", "select=2:ncpus=3:mpiprocs=2", "-l", "place=scatter"),
        *("-v", "MINE='a,b c',OTHER=1", "-j", "oe", "-k", "doe", "-o", "out"),
    )
    assert await_end(pbs, name)["Exit_status"] == 0
    home, work = pbs.work.parent, pbs.work
    assert (pbs.work / "out").read_text().splitlines() == [
        f"{home} {work} 1.pbs mine workq 3 3 [a,b c] []",
        "pbs1",
        "pbs2",
    ]


def test_v_of_the_command_line_replaces_that_of_the_script(pbs: RunningPbs) -> None:
    text = '#PBS -v A=1\necho "[$A] [$B]"'
    name = pbs.submit(text, "-v", "B=2", "-j", "oe", "-k", "doe", "-o", "out")
    await_end(pbs, name)
    assert (pbs.work / "out").read_text() == "[] [2]\n"


def test_output_is_spooled_unless_it_is_kept_directly(pbs: RunningPbs) -> None:
    spooled = pbs.submit("echo hello; sleep 300", "-j", "oe", "-o", "spooled")
    live = pbs.submit("echo hello; sleep 300", "-j", "oe", "-k", "doe", "-o", "live")
    wait_for(lambda: (pbs.work / "live").exists() and (pbs.work / "live").read_text() != "")
    assert not (pbs.work / "spooled").exists()
    assert pbs.command("qdel", spooled, live).returncode == 0
    await_end(pbs, spooled)
    assert (pbs.work / "spooled").read_text() == "hello\n"


def test_pbsdsh_hides_a_failure_and_pbs_tmrsh_does_not(pbs: RunningPbs) -> None:
    text = "pbsdsh -- bash -c 'exit 3'; echo $?; pbs_tmrsh pbs1 bash -c 'exit 7'; echo $?"
    text += "; export X=1; pbs_tmrsh pbs1 bash -c 'echo [$X]'; pbs_tmrsh other true; echo $?"
    name = pbs.submit(text, "-j", "oe", "-k", "doe", "-o", "out")
    await_end(pbs, name)
    lines = (pbs.work / "out").read_text().splitlines()
    assert lines == [
        "0",
        "7",
        "[]",
        f'pbs_tmrsh: host "other" is not a node in job <{name}>',
        "255",
    ]


def test_a_job_over_its_walltime_and_a_deleted_one(pbs: RunningPbs) -> None:
    late = pbs.submit("sleep 300", "-l", "walltime=00:00:01")
    deleted = pbs.submit("sleep 300")
    waiting = pbs.submit("true", "-h")
    assert job(pbs, waiting)["job_state"] == "H"
    assert pbs.command("qdel", deleted, waiting).returncode == 0
    ends = [await_end(pbs, name) for name in (late, deleted, waiting)]
    codes = [(end.get("Exit_status"), end["substate"]) for end in ends]
    assert codes == [(-29, 93), (271, 91), (None, 91)]


def test_processes_in_sessions_of_their_own_end_with_the_job(pbs: RunningPbs) -> None:
    name = pbs.submit("setsid sleep 301 & echo $! >pid; mv pid started; wait")
    file = pbs.work.parent / "started"
    wait_for(file.exists)
    process = Path("/proc", file.read_text().strip())
    assert process.exists()
    pbs.command("qdel", name)
    await_end(pbs, name)
    wait_for(lambda: not process.exists())


def test_a_job_that_does_not_fit_waits(pbs: RunningPbs) -> None:
    held = pbs.submit("sleep 300", "-l", "select=2:ncpus=4", "-l", "place=scatter")
    never = pbs.submit("true", "-l", "select=1:ncpus=64")
    many = pbs.submit("true", "-l", "select=3:ncpus=1", "-l", "place=scatter")
    later = pbs.submit("true", "-l", "select=1:ncpus=1")
    wait_for(lambda: "comment" in job(pbs, later))
    found = [job(pbs, name)["comment"] for name in (never, many, later)]
    assert found == [
        "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 4 T: 4)",
        "Can Never Run: Not enough total nodes available",
        "Not Running: Insufficient amount of resource: ncpus (R: 1 A: 0 T: 4)",
    ]
    pbs.command("qdel", held)
    await_end(pbs, later)


@pytest.mark.parametrize(
    ("file", "options", "text"),
    [("qstat-xf-3.json", ["-o", "e.out"], "exit 9"), ("qstat-xf-2.json", ["-l", "walltime=1"], "")],
)
def test_the_attributes_of_an_ended_job_are_those_of_a_recorded_one(
    pbs: RunningPbs, file: str, options: list[str], text: str
) -> None:
    (recorded,) = json.loads((RECORDED / file).read_text())["Jobs"].values()
    found = await_end(pbs, pbs.submit(text or "sleep 300", *options))
    # Of the real PBS's own daemon.
    missing = recorded.keys() - {"session_id", "jobdir"} - found.keys()
    assert missing == set()
    assert {type(found[key]) for key in recorded.keys() & found.keys()} <= {str, int, dict}
    wanted = {key: type(value) for key, value in recorded.items() if key in found}
    assert {key: type(found[key]) for key in wanted} == wanted


def test_an_unknown_job_and_a_finished_one_without_history(pbs: RunningPbs) -> None:
    name = pbs.submit("true")
    await_end(pbs, name)
    unknown = pbs.command("qstat", "-x", "-f", "-F", "json", name, "99.pbs")
    assert (unknown.returncode, unknown.stderr) == (153, "qstat: Unknown Job Id 99.pbs\n")
    assert list(json.loads(unknown.stdout)["Jobs"]) == [name]
    assert pbs.command("qstat", "-f", name).returncode == 35


def test_another_size_beside_a_running_one_is_refused(pbs: RunningPbs) -> None:
    with pytest.raises(LabError, match="has 2 nodes of 4 cores"):
        small_pbs.up(pbs.folder, NodeSize(nodes=3))
    assert small_pbs.up(pbs.folder, NodeSize(nodes=2, ncpus=4))[1] is False


def test_a_folder_of_something_else_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    with pytest.raises(LabError, match="is not that of a small PBS"):
        small_pbs.up(tmp_path / "mine", NodeSize())
    assert small_pbs.down(tmp_path / "mine") is False
