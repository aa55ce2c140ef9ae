"""docs/surviving.md: each fault hits one training on a real Slurm, and nothing of it is lost.

The training goes on after each of them; at the end its losses and weights are those of an
undisturbed one, bit for bit.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hpc_train.lab import state_file
from tests.conftest import Hpctrain, Slurm
from tests.end_to_end import daemons, gated
from tests.end_to_end.gated import Training
from tests.end_to_end.user import User, user_of
from tests.pipeline.waiting import ended, wait_for

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.usefixtures("torch"),
    pytest.mark.skipif(
        "HPCTRAIN_FAULTS" not in os.environ, reason="takes minutes; HPCTRAIN_FAULTS=1"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`end` is in the row of the start that it ended; None: the start goes on."""

    name: str
    inject: Callable[[Training], None]
    end: str | None


def time_limit(training: Training) -> None:
    started = training.user.run("t")["started"]
    minutes = int((time.time() - started) / 60) + 2
    training.update(f"timelimit={minutes}")
    wait_for(lambda: training.user.run("t")["state"] == "PENDING")
    training.update("timelimit=9")


def signalled(training: Training) -> None:
    training.slurm("scancel", "--signal=USR1", training.number)


def preempted(training: Training) -> None:
    size = {"nodes": 3, "tasks_per_node": 1, "cpus_per_task": 8, "gpus_per_node": 0, "time": "5m"}
    urgent = {"name": "urgent", "command": ["true"], "launcher": "srun", "qos": "high"}
    training.user.submit(training.user.write("urgent.yaml", {**urgent, "resources": size}))
    wait_for(lambda: training.user.run("urgent")["state"] == "COMPLETED")


def requeued(training: Training) -> None:
    training.slurm("scontrol", "requeue", training.number)


def corrupted(training: Training) -> None:
    """Damage the newest checkpoint while the job waits."""
    requeued(training)
    wait_for(lambda: training.user.run("t")["state"] == "PENDING")
    newest = max(training.folder.glob("checkpoints/step-*"))
    data = next(newest.glob("__0_*.distcp"))
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)


def rank_killed(training: Training) -> None:
    os.kill(training.pid(1), signal.SIGKILL)


def agent_killed(training: Training) -> None:
    os.kill(gated.agent_of(training.pid(1)), signal.SIGKILL)


def rank_hangs(training: Training) -> None:
    os.kill(training.pid(1), signal.SIGUSR2)
    log = training.folder / "logs/job.out"
    wait_for(lambda: "hpctrain: hang: no step for 15 s; " in log.read_text())
    (said,) = [line for line in log.read_text().splitlines() if "hpctrain: hang: " in line]
    assert re.search(
        r"rank 1 did not arrive, it was in .*gated_training.py\", line \d+ in hang", said
    )
    assert said.endswith("; 1 waited in a collective (rank 0)")


def node_lost(training: Training) -> None:
    node = training.user.run("t")["nodes"]
    name = "lab2" if node == "lab[1-2]" else "lab3"
    daemons.kill_node(name)
    training.slurm("scontrol", "update", f"nodename={name}", "state=down", "reason=power")


def controller_restarted(training: Training) -> None:
    daemons.stop_controller()
    training.open_gate()
    training.reaches_gate()
    daemons.start_controller()
    wait_for(lambda: training.user.run("t")["state"] == "RUNNING")


def results_gone(training: Training) -> None:
    """Take the run folder away while a checkpoint is due, and bring it back."""
    away = training.folder.with_name("away")
    log = away / "logs" / "rank-0.out"
    training.folder.rename(away)
    training.open_gate()
    wait_for(lambda: "no checkpoint: " in log.read_text())
    assert not training.folder.exists()
    away.rename(training.folder)


BY_SLURM = "ended by Slurm: preempted, requeued or cancelled"
HUNG = "no step for the time of lifecycle.hang_after"
SAVED = "checkpoint saved on request"
FAULTS = [
    Fault(name="time limit", inject=time_limit, end=SAVED),
    Fault(name="scancel --signal=USR1", inject=signalled, end=SAVED),
    Fault(name="preemption by a higher QOS", inject=preempted, end=BY_SLURM),
    Fault(name="slurmctld restarted", inject=controller_restarted, end=None),
    Fault(name="SIGKILL of a rank", inject=rank_killed, end="exit code "),
    Fault(name="results folder gone", inject=results_gone, end=None),
    Fault(name="SIGKILL of torchrun's agent", inject=agent_killed, end="exit code "),
    Fault(name="scontrol requeue, newest checkpoint damaged", inject=corrupted, end=BY_SLURM),
    Fault(name="a rank hangs", inject=rank_hangs, end=HUNG),
    Fault(name="a node lost", inject=node_lost, end=""),
]


@pytest.fixture
def user(
    no_lab: None, hpctrain: Hpctrain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[User]:
    done = hpctrain("up", "--nodes", "3", "--accounting")
    assert done.returncode == 0, done.stderr
    lab = state_file.read()
    assert lab is not None
    monkeypatch.setenv("SLURM_CONF", f"{lab.settings.folder}/slurm.conf")
    yield user_of(lab, tmp_path)
    assert hpctrain("down").returncode == 0


def test_every_fault_of_the_table(user: User, slurm: Slurm, tmp_path: Path) -> None:
    # A fault that does not end the start passes two gates.
    passed = sum(1 if fault.end is not None else 2 for fault in FAULTS)
    steps = passed * gated.GATE + 3
    training = gated.submit(user, slurm, steps)
    expected = gated.undisturbed(tmp_path, steps)
    for fault in FAULTS:
        training.reaches_gate()
        begun, before, step = time.time(), len(training.starts()), training.gate
        ranks = [str(training.pid(rank)) for rank in (0, 1)]
        fault.inject(training)
        if fault.end is not None:
            row = training.next_end(before)
            assert fault.end in row["reason"], (fault.name, row)
            # At a gate, the step of the gate itself is not saved yet.
            lost = 0 if fault.end == SAVED else (step - 1) % gated.SAVE + 1
            assert row["steps_lost"] == lost, (fault.name, row)
            training.starts_again(before + 1)
            training.reaches_gate()
            # A rank of the earlier start would write into the same checkpoints.
            assert [ended(rank) for rank in ranks] == [True, True], fault.name
        # Shown with a failure, and by pytest -s: the figures of docs/surviving.md.
        print(f"{fault.name}: after step {step}, {time.time() - begun:.1f} s")  # noqa: T201
        training.open_gate()
    wait_for(lambda: training.user.run("t")["state"] == "COMPLETED")
    logs = [(training.folder / f"logs/rank-{rank}.out").read_text() for rank in (0, 1)]
    assert "is damaged and left out: " in logs[0] + logs[1]
    assert [gated.result(log) for log in logs] == expected


def test_two_starts_without_progress_end_the_job(user: User, slurm: Slurm) -> None:
    training = gated.submit_stalled(user, slurm)
    for number in (1, 2):
        training.starts_again(number)
    wait_for(lambda: user.run("s")["state"] == "FAILED")
    said = (training.folder / "logs/job.out").read_text()
    assert "not queued again: 2 starts in a row have no checkpoint after step 0" in said
