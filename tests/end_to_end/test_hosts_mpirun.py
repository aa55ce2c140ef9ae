"""mpirun and spawn on machines by ssh, which do not reach each other by ssh."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.end_to_end.ssh_hosts import WAIT, HostsUser
from tests.pipeline.waiting import LIMIT_S, wait_for

pytestmark = [pytest.mark.ssh]

TRAINER = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {total.item():.0f}")
dist.destroy_process_group()
"""
SPAWNER = """\
import os, torch, torch.distributed as dist, torch.multiprocessing as mp

def rank(local):
    count = int(os.environ["LOCAL_WORLD_SIZE"])
    os.environ["RANK"] = str(int(os.environ["NODE_RANK"]) * count + local)
    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {total.item():.0f}", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(rank, nprocs=int(os.environ["LOCAL_WORLD_SIZE"]))
"""


def mpi(user: HostsUser, program: str, tasks: int = 1, **keys: Any) -> str:
    """Write a job whose ranks mpirun starts."""
    return user.job(program, launcher="mpirun", resources={"tasks_per_node": tasks}, **keys)


def on_each(host: str) -> str:
    """Return a program of bash that says where each rank is."""
    return f'echo "$RANK of $WORLD_SIZE: $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(uname -n){host}"'


def test_mpirun_starts_the_ranks_of_both_hosts(mine: HostsUser) -> None:
    mine.submit(mpi(mine, f'{on_each(" in $PWD of $HPCTRAIN_RUN")}; echo "$MASTER_ADDR"', 2))
    assert mine.wait("COMPLETED")["nodes"] == "host1,host2"
    logs = mine.user.logs("j")
    for rank in range(4):
        first, address = logs[f"rank-{rank}.out"].splitlines()
        assert first.startswith(f"{rank} of 4: {rank % 2} of 2 on host{rank // 2 + 1} in /")
        assert "/hpctrain/work/" in first
        assert address == "10.79.0.1"
    mine.nothing_left()
    assert mine.on("host1", "ls -d /tmp/hpctrain-mpi.*") == ""


@pytest.mark.long
def test_ranks_of_mpirun_train_together(mine: HostsUser, torch: None) -> None:
    (mine.user.folder / "train.py").write_text(TRAINER)
    mine.submit(mpi(mine, "", 2, command=["python", "train.py"]))
    # Four processes import torch, which on a busy machine takes minutes.
    mine.wait("COMPLETED", within_s=5 * LIMIT_S)
    logs = mine.user.logs("j")
    assert all(f"rank {rank} of 4: sum 4" in logs[f"rank-{rank}.out"] for rank in range(4))


@pytest.mark.long
def test_ranks_that_a_program_spawns_train_together(mine: HostsUser, torch: None) -> None:
    (mine.user.folder / "train.py").write_text(SPAWNER)
    resources = {"tasks_per_node": 2}
    mine.submit(mine.job("", command=["python", "train.py"], resources=resources))
    mine.wait("COMPLETED", within_s=5 * LIMIT_S)
    logs = mine.user.logs("j")
    said = logs["node-0.out"] + logs["node-1.out"]
    assert all(f"rank {rank} of 4: sum 4" in said for rank in range(4))


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long), 1])
def test_the_first_rank_that_fails_ends_all(mine: HostsUser, rank: int) -> None:
    mine.submit(mpi(mine, f'[ "$RANK" != {rank} ] || exit 3\nsleep 600'))
    row = mine.wait("FAILED")
    assert f"rank {rank} on host{rank + 1}: exit code 3" in row["problem"]
    mine.nothing_left()
    assert not mine.on("host2", "pgrep -x orted")


def test_cancel_leaves_no_rank_of_mpirun(mine: HostsUser) -> None:
    mine.submit(mpi(mine, f'trap "" TERM\nsetsid sleep 600 &\n{WAIT}', 2))
    logs = {f"rank-{rank}.out" for rank in range(4)}
    wait_for(lambda: logs <= {name for name, text in mine.user.logs("j").items() if text})
    done = mine.user.hpctrain("cancel", "j")
    assert done.returncode == 0, done.stderr
    mine.nothing_left()
    for host in ("host1", "host2"):
        assert not mine.on(host, "pgrep -x 'orted|mpirun'")
    assert mine.row()["state"] == "CANCELLED"


@pytest.mark.long
def test_a_daemon_that_is_killed_fails_the_run(mine: HostsUser) -> None:
    mine.submit(mpi(mine, WAIT.replace("NODE_RANK", "RANK")))
    mine.user.says("j", "here", "rank-1.out")
    mine.on("host2", "pkill -KILL -x orted")
    mine.wait("FAILED")
    mine.nothing_left()


@pytest.mark.long
def test_a_host_without_power_ends_the_ranks_of_mpirun(mine: HostsUser) -> None:
    mine.submit(mpi(mine, WAIT.replace("NODE_RANK", "RANK")))
    mine.user.says("j", "here", "rank-1.out")
    mine.switch_off(1)
    try:
        assert mine.wait("NODE_FAIL")["problem"].startswith("host2 has not answered for ")
        assert not mine.left("host1")
    finally:
        mine.switch_on(1)


@pytest.mark.long
def test_the_limit_holds_for_mpirun_without_the_machine_that_submitted(mine: HostsUser) -> None:
    resources = {"tasks_per_node": 1, "time": "20s"}
    mine.submit(mine.job(WAIT.replace("NODE_RANK", "RANK"), launcher="mpirun", resources=resources))
    mine.user.says("j", "here", "rank-1.out")
    os.kill(mine.supervisor(), signal.SIGKILL)
    mine.wait("TIMEOUT")
    mine.nothing_left()
