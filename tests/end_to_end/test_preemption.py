"""A training that a higher QOS preempts, with a grace time: it saves, and goes on where it was.

Without more, Slurm sends TERM to the ranks when the grace time begins; with a parameter of the
controller, the signal that the job asked for. The ranks are between two checkpoints of their own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Slurm
from tests.end_to_end import gated
from tests.end_to_end.gated import Training
from tests.end_to_end.queue import start_now
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("torch")]
USER_SIGNAL = "SlurmctldParameters=preempt_send_user_signal\n"
GRACE_S = 60


@pytest.fixture
def user(
    user_of_a_lab: Callable[..., AbstractContextManager[User]], slurm: Slurm
) -> Iterator[User]:
    """Return somebody on a lab of two nodes, whose QOS `normal` has a grace time."""
    with user_of_a_lab("--nodes", "2", "--accounting") as found:
        slurm("sacctmgr", "-i", "modify", "qos", "normal", "set", f"gracetime={GRACE_S}")
        yield found


@pytest.mark.long
def test_a_preempted_training_loses_no_step(user: User, slurm: Slurm, tmp_path: Path) -> None:
    expected = gated.undisturbed(tmp_path, 3 * gated.GATE)
    for launcher in ("srun", "torchrun"):
        training = gated.submit(
            user, slurm, launcher, 3 * gated.GATE, launcher=launcher, lifecycle={}
        )
        is_preempted(training)
        assert finishes(training) == expected


@pytest.mark.long
def test_the_signal_of_the_job_comes_instead_of_term(user: User, slurm: Slurm) -> None:
    with Path(os.environ["SLURM_CONF"]).open("a") as conf:
        conf.write(USER_SIGNAL)
    slurm("scontrol", "reconfigure")
    for how in ("signal", "file"):
        training = gated.submit(user, slurm, how, 3 * gated.GATE, lifecycle={"stop_by": how})
        is_preempted(training)
        finishes(training)


def test_a_program_that_ends_at_term_is_queued_again(user: User, slurm: Slurm) -> None:
    """Slurm queues no job again that ends within the grace time; an error of its own ends it."""
    script = '[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 1; exec sleep 600'
    job = {"name": "plain", "command": ["bash", "-c", script], "launcher": "srun", "lifecycle": {}}
    job |= {"qos": "normal", "resources": {"nodes": 2, **gated.NODE}}
    done = user.submit(user.write("plain.yaml", job))
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


def is_preempted(training: Training) -> None:
    """Preempt it at its first gate, two steps after a checkpoint; see it resume there."""
    training.reaches_gate()
    began = time.time()
    urgent(training.user, training.name)
    row = training.next_end(0)
    assert row["reason"] == "preempted, checkpoint saved on request"
    assert (row["step"], row["steps_lost"]) == (gated.GATE, 0)
    assert row["ended"] - began < GRACE_S
    # Shown with a failure, and by pytest -s.
    print(f"{training.name}: ended {row['ended'] - began:.1f} s later")  # noqa: T201
    training.starts_again(1)
    wait_for(lambda: f'"resumed":{gated.GATE}}}' in training.log())


def finishes(training: Training) -> list[gated.Result]:
    for _ in range(3):
        training.open_gate()
    training.becomes("COMPLETED")
    logs = [(training.folder / f"logs/rank-{rank}.out").read_text() for rank in (0, 1)]
    return [gated.result(log) for log in logs]


def urgent(user: User, preempted: str) -> None:
    """Run a job that needs both nodes, and may preempt."""
    size = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 8, "gpus_per_node": 0, "time": "5m"}
    name = f"before-{preempted}"
    job: dict[str, Any] = {"name": name, "command": ["true"], "launcher": "srun", "qos": "high"}
    done = user.submit(user.write("urgent.yaml", {**job, "resources": size}))
    assert done.returncode == 0, done.stderr
    user.wait(name, "COMPLETED")
