"""mpirun and spawn on machines by ssh, which do not reach each other by ssh."""

from typing import Any

import pytest

from tests.end_to_end.host_user import WAIT, HostsUser
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.ssh]


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


def test_the_first_rank_that_fails_ends_all(mine: HostsUser) -> None:
    mine.submit(mpi(mine, '[ "$RANK" != 1 ] || exit 3\nsleep 600'))
    row = mine.wait("FAILED")
    assert "rank 1 on host2: exit code 3" in row["problem"]
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
