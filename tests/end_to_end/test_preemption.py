"""A program that ends at the TERM of a preemption, in the grace time, is queued again, once.

That a preempted training goes on where it was is in `injected_faults`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import Slurm
from tests.end_to_end import gated
from tests.end_to_end.queue import start_now
from tests.end_to_end.studies import job
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]


@pytest.fixture
def user(
    user_of_a_lab: Callable[..., AbstractContextManager[User]], slurm: Slurm
) -> Iterator[User]:
    """Return somebody on a lab of two nodes, whose QOS `normal` has a grace time."""
    with user_of_a_lab("--nodes", "2", "--accounting") as found:
        slurm("sacctmgr", "-i", "modify", "qos", "normal", "set", "gracetime=60")
        yield found


def test_a_program_that_ends_at_term_is_queued_again(user: User, slurm: Slurm) -> None:
    """Slurm queues no job again that ends within the grace time; an error of its own ends it."""
    script = '[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 1; exec sleep 600'
    plain = job("plain", script, nodes=2, time="9m", qos="normal", lifecycle={})
    done = user.submit(user.write("plain.yaml", plain))
    assert done.returncode == 0, done.stderr
    user.wait("plain", "RUNNING")
    wait_for(lambda: (Path(user.folder, user.run("plain")["folder"]) / "logs/rank-1.out").exists())
    urgent(user, "plain")
    user.until("plain", lambda row: row["restarts"] != [])
    (row,) = user.run("plain")["restarts"]
    assert (row["exit_code"], row["reason"]) == (143, "preempted")
    # The preemption of the start before is not taken for one of this.
    wait_for(lambda: failed(user, "plain"), every_s=gated.POLL_S)
    run = user.run("plain")
    assert [end["reason"] for end in run["restarts"]] == ["preempted", "exit code 1"]
    assert slurm("squeue", "--noheader", "--states=all", f"--jobs={run['job']}", "--format=%T") == (
        "FAILED\n"
    )


def failed(user: User, name: str) -> bool:
    """Let the job start now, if it waits; return whether it has failed."""
    run = user.run(name)
    start_now(run["job"])
    return bool(run["state"] == "FAILED")


def urgent(user: User, preempted: str) -> None:
    """Run a job that needs both nodes, and may preempt."""
    name = f"before-{preempted}"
    before = job(name, "true", nodes=2, qos="high", resources={"cpus_per_task": 8})
    done = user.submit(user.write("urgent.yaml", before))
    assert done.returncode == 0, done.stderr
    user.wait(name, "COMPLETED")
