"""The nodes of a real Slurm are asked before the ranks start; a bad one is gone round."""

import subprocess
from collections.abc import Iterator

import pytest

from hpc_train.lab.daemons import namespace
from tests.end_to_end.studies import job
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
CHECKS = "preflight: {interfaces: [eth0, ib0], space: {/tmp: 1M}, clock: 5s}\npoll: 2s\n"


@pytest.fixture
def broken() -> Iterator[str]:
    """Take one node's fast network down."""
    inside = ["ip", "netns", "exec", namespace("lab2"), "ip", "link", "set", "ib0"]
    subprocess.run([*inside, "down"], check=True)
    yield "lab2"
    subprocess.run([*inside, "up"], check=True)


def test_a_node_without_its_network_is_gone_round(user: User, broken: str) -> None:
    user.site("checked", "poll: 2s\n", CHECKS)
    user.write("job.yaml", job("asked", "echo here", nodes=2, time="1m"))
    done = user.submit("job.yaml", "--wait", site="checked")
    assert done.returncode == 1
    assert f"preflight: checks failed on {broken}" in done.stderr
    assert f"hpctrain: preflight: {broken}: interface ib0 is down" in done.stdout + done.stderr
    (failed,) = user.runs("asked").values()
    # Shown with a failure, and by pytest -s: the figure of docs/restart.md.
    print(f"a node fails the preflight: {failed['ended'] - failed['started']:.1f} s")  # noqa: T201
    again = user.hpctrain("retry", "asked", "--wait", "--exclude-failed-nodes")
    assert again.returncode == 0, again.stderr
    assert f"without the nodes {broken}" in again.stderr
    states = {row["state"]: row["nodes"] for row in user.runs("asked").values()}
    assert set(states) == {"FAILED", "COMPLETED"}
    assert states["COMPLETED"] in ("lab[1,3]", "lab[1,4]", "lab[3-4]")
