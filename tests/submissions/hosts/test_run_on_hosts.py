"""The locks of hosts: what is waited for, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.run import RunFolder
from hpc_train.submissions.hosts.queue_runner import HostQueue, candidates
from hpc_train.submissions.hosts.run_on_hosts import take_hosts
from tests.submissions.hosts.test_checked_hosts import plan, say, ssh

__all__ = ["ssh"]


@pytest.mark.parametrize(
    ("second", "nodes", "lasting"),
    [
        ("busy r1 of me", 2, False),
        ("gpu_in_use 0 9000 10000", 2, False),
        ("fault Read-only file system: /home/me/hpctrain", 2, True),
        # The other host is enough, once it is free.
        ("fault Read-only file system: /home/me/hpctrain", 1, False),
    ],
)
def test_a_fault_that_lasts_is_not_waited_for(
    ssh: Path, second: str, nodes: int, lasting: bool
) -> None:
    say(ssh, "gpu1", "busy r2 of you")
    say(ssh, "gpu2", second)
    wanted = plan(ssh, nodes)
    hosts = candidates(wanted, HostQueue(runs=()))
    taken = take_hosts(RunFolder(path=ssh / "run"), wanted, hosts)
    assert (taken.started, taken.lasting) == (None, lasting)
    assert taken.reason.startswith("gpu1 is in use by r2 of you; gpu2 ")


def test_locks_that_are_not_enough_are_given_up(ssh: Path) -> None:
    lines = "\\n".join(("ANSWER", "folder /f", "boot b", "port 61000", "END", ""))
    for host in ("gpu1", "gpu2"):
        text = f"{{ echo {host}; head -n 1; }} >>calls\nprintf '{lines}'\n"
        (ssh / f"{host}.sh").write_text(text)
    say(ssh, "gpu2", "busy r1 of me")
    wanted = plan(ssh, 2)
    taken = take_hosts(RunFolder(path=ssh / "run"), wanted, candidates(wanted, HostQueue(runs=())))
    assert (taken.started, taken.reason) == (None, "gpu2 is in use by r1 of me")
    took, gave_up = (ssh / "calls").read_text().split("gpu1\n")[1:]
    assert took.startswith("set -- take ")
    assert gave_up == "set -- start /f end\n"
