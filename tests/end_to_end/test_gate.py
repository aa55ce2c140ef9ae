"""One session of a Slurm of two nodes: what every change has to leave as it is.

All jobs are submitted at once and run beside each other; each test waits for its own. A node is
lost at the end.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import Slurm, pointed_at
from tests.end_to_end import daemons
from tests.end_to_end.queue import drained, starts_again, wait_until_idle
from tests.end_to_end.studies import job
from tests.end_to_end.user import User, user_of

pytestmark = [pytest.mark.slurm, pytest.mark.gate]

SAY = 'echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK on $(hostname), at $MASTER_ADDR"'
SAID = re.compile(r"^rank (\d) of 4, (\d) on (lab\d), at (\S+)$", re.MULTILINE)
EVENTS = """\
echo '@hpct {"event": "step", "step": 1, "step_time": 0.5, "samples": 8}'
echo '@hpct {"event": "end", "global_batch_size": 8, "world_size": 1}'
"""
AGAIN = 'echo "start $SLURM_RESTART_COUNT"; [ "${SLURM_RESTART_COUNT:-0}" != 0 ] || exit 75'
FAILS = """\
[ ! -e mended ] || exit 0
[ "$RANK" != 1 ] || { echo "no data in the file"; exit 9; }
exec sleep 600
"""
WAITS = '[ "${SLURM_RESTART_COUNT:-0}" != 0 ] || { echo waits; sleep 600; }; echo ended'


def repeated(name: str, one: dict[str, Any], axes: dict[str, Any], times: int) -> dict[str, Any]:
    """Return a study."""
    study = {"name": name, "job": one, "axes": axes, "repetitions": times, "scaling": "strong"}
    return {**study, "warmup": {"steps": 0}}


JOBS = (
    job("lost", WAITS),
    job("fails", FAILS, nodes=2),
    job("again", AGAIN, lifecycle={}),
    job("gone", "echo waits; sleep 600", nodes=2),
    *(job(one, SAY, nodes=2, tasks=2, launcher=one) for one in ("srun", "torchrun", "mpirun")),
    repeated("array", job("one", EVENTS), {"nodes": [1]}, times=3),
)


@pytest.fixture(scope="module")
def user(
    lab_with: Callable[..., Lab], slurm: Slurm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[User]:
    """Return somebody who has submitted everything."""
    with pytest.MonkeyPatch.context() as patch:
        lab = pointed_at(lab_with("--nodes", "2", "--cpus", "16"), patch)
        found = user_of(lab, tmp_path_factory.mktemp("gate"))
        slurm("scancel", "--user=root")
        wait_until_idle(slurm)
        for one in JOBS:
            done = found.submit(found.write(f"{one['name']}.yaml", one))
            assert done.returncode == 0, done.stderr
        yield found
        slurm("scancel", "--user=root")


def test_a_cancelled_job_ends(user: User) -> None:
    user.says("gone", "waits", "rank-0.out", "rank-1.out")
    done = user.hpctrain("cancel", "gone")
    assert done.returncode == 0, done.stderr
    assert user.wait("gone", "CANCELLED")["problem"] == "cancelled by the user"


def test_a_failed_rank_is_named_and_its_job_is_retried(user: User) -> None:
    row = user.wait("fails", "FAILED")
    assert re.fullmatch(r"rank 1 on lab\d: exit code 9", row["problem"])
    assert "rank-1.out: no data in the file" in user.hpctrain("status", row["run"]).stdout
    (user.folder / "mended").touch()
    done = user.hpctrain("retry", "fails", "--wait")
    assert done.returncode == 0, done.stderr
    states = [one["state"] for _, one in sorted(user.runs("fails").items())]
    assert states == ["FAILED", "COMPLETED"]


def test_an_array_has_a_run_for_each_repetition(user: User) -> None:
    rows = user.wait_all("array", "COMPLETED")
    (number,) = {row["job"].partition("_")[0] for row in rows.values()}
    assert {row["job"] for row in rows.values()} == {f"{number}_{n}" for n in (1, 2, 3)}
    assert "3 of 3 runs ok" in user.hpctrain("report", "array").stdout
    again = user.submit("array.yaml")
    assert (again.returncode, again.stdout) == (0, "")


def test_a_job_that_asks_for_it_is_queued_again(user: User) -> None:
    first = user.until("again", lambda row: row["restarts"] != [])
    starts_again(first["job"])
    user.wait("again", "COMPLETED")
    # The script adds its start to the list after it has recorded its end.
    row = user.until("again", lambda row: len(row["restarts"]) == 2)
    assert (row["restart_count"], row["job"]) == (1, first["job"])
    assert [end["exit_code"] for end in row["restarts"]] == [75, 0]
    assert "start 1" in user.logs("again")["rank-0.out"]


@pytest.mark.parametrize(
    "launcher", ["srun", "torchrun", pytest.param("mpirun", marks=pytest.mark.mpi)]
)
def test_ranks_on_two_nodes(user: User, torch: None, launcher: str) -> None:
    assert user.wait(launcher, "COMPLETED")["nodes"] == "lab[1-2]"
    text = "".join(user.logs(launcher).values())
    first = SAID.findall(text)[0][-1]
    places = [("0", "0", "lab1"), ("1", "1", "lab1"), ("2", "0", "lab2"), ("3", "1", "lab2")]
    assert sorted(SAID.findall(text)) == [(*place, first) for place in places]


def test_a_job_on_a_node_that_is_lost_starts_elsewhere(user: User, slurm: Slurm) -> None:
    user.says("lost", "waits", "rank-0.out")
    first = user.run("lost")
    (other,) = {"lab1", "lab2"} - {first["nodes"]}
    # No node is left for it: it waits until the test has looked.
    with drained(slurm, other):
        daemons.kill_node(first["nodes"])
        slurm("scontrol", "update", f"nodename={first['nodes']}", "state=down", "reason=power")
        # The file is that of the first start, which never ended; the lab has no accounting.
        row = user.until("lost", lambda row: row["earlier_start"] is not None)
        assert (row["state"], row["earlier_start"]["started"]) == ("PENDING", first["started"])
        assert f"it ran on {first['nodes']} from " in row["reason"]
        assert "recorded no end: its node was lost" in row["reason"]
    starts_again(first["job"])
    row = user.wait("lost", "COMPLETED")
    assert (row["job"], row["restart_count"], row["nodes"]) == (first["job"], 1, other)
    assert "hpctrain: restart 1" in user.logs("lost")["job.out"]
