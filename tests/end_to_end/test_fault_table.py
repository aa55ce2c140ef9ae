"""docs/restart.md: faults hit trainings on a real Slurm, and nothing of them is lost.

Trainings run beside each other, each on nodes of its own; each goes on after each of its faults.
At the end their losses and weights are those of an undisturbed one, bit for bit.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Slurm
from tests.end_to_end import gated
from tests.end_to_end.gated import Training
from tests.end_to_end.injected_faults import (
    BY_SLURM,
    CONTROLLER,
    FAULTS,
    FEW,
    NODES,
    SAVED,
    Fault,
    agent_killed,
    corrupted,
    steps,
)
from tests.end_to_end.user import User
from tests.submissions.waiting import ended

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("torch")]

Table = Mapping[str, tuple[Fault, ...]]


@pytest.fixture
def user(
    user_of_a_lab: Callable[..., AbstractContextManager[User]], tmp_path: Path
) -> Iterator[User]:
    """Return somebody on a lab with accounting and spare nodes, and with a small disk."""
    disk = tmp_path / "results" / "three"
    disk.mkdir(parents=True)
    # Before the daemons start, which have mounts of their own.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    with user_of_a_lab("--nodes", str(gated.NODES), "--accounting") as found:
        yield found
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize(
    "table", [pytest.param(FEW, id="few"), pytest.param(FAULTS, marks=pytest.mark.long, id="all")]
)
def test_faults_of_the_table(user: User, slurm: Slurm, tmp_path: Path, table: Table) -> None:
    trainings = [submit(user, slurm, name, table) for name in table]
    with ThreadPoolExecutor() as pool:
        expected = pool.submit(gated.undisturbed, tmp_path, steps(table) + 3)
        for training in trainings:
            training.reaches_gate()
        # Before the others, which ask it.
        apply(CONTROLLER, trainings[1])
        results = list(pool.map(lambda one: finishes(one, table), trainings))
        assert results == [expected.result()] * len(trainings)


def submit(user: User, slurm: Slurm, name: str, table: Table) -> Training:
    """Submit a training that any failure of a rank queues again."""
    torchrun = any(fault.inject is agent_killed for fault in table[name])
    return gated.submit(
        user,
        slurm,
        name,
        steps(table) + 3,
        launcher="torchrun" if torchrun else "srun",
        lifecycle={"requeue_on": [1, 75, 137]},
        directives=gated.only(NODES[name]),
    )


def finishes(training: Training, table: Table) -> list[gated.Result]:
    """Apply the faults of a training, and let it end."""
    for fault in table[training.name]:
        apply(fault, training)
    while training.gate <= steps(table):
        training.open_gate()
    training.becomes("COMPLETED")
    logs = [(training.folder / f"logs/rank-{rank}.out").read_text() for rank in (0, 1)]
    damaged = any(fault.inject is corrupted for fault in table[training.name])
    assert ("is damaged and left out: " in logs[0] + logs[1]) == damaged
    check_damaged(training, damaged=damaged)
    check_report(training, steps(table) + 3)
    check_blame(training)
    return [gated.result(log) for log in logs]


def check_damaged(training: Training, *, damaged: bool) -> None:
    """Steps are lost since the checkpoint that the next start loaded; its own ones are progress."""
    ends = training.user.run(training.name)["restarts"]
    assert ("not loaded" in ends[0]["reason"]) == damaged, ends
    rows = lines_of_starts(training)
    assert not damaged or rows[0]["step"] > rows[1]["loaded"] == ends[0]["step"], ends
    assert not damaged or ends[0]["steps_lost"] == rows[0]["reached"] - ends[0]["step"], ends
    assert [row["stalled"] for row in rows[:2]] == [0, 0], rows


def lines_of_starts(training: Training) -> list[dict[str, Any]]:
    lines = (training.folder / "restarts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def check_report(training: Training, trained: int) -> None:
    """A report has one run, each of its steps once, and the time that its restarts cost."""
    done = training.user.hpctrain("report", training.name, "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["n_submitted"], row["warmup_steps"] + row["steps"]) == (1, trained), row
    ends = training.user.run(training.name)["restarts"]
    waited = sum(end["waited_s"] or 0.0 for end in ends)
    ran = sum(end["ended"] - end["started"] for end in ends if end["ended"] is not None)
    assert waited < row["lost_to_restarts_s"] < ends[-1]["ended"] - ends[0]["started"], row
    assert row["wall_s"] >= ran, row


def check_blame(training: Training) -> None:
    """All faults are of rank 1, on the last node: the other one fails as well, perhaps earlier."""
    for row in lines_of_starts(training):
        nodes = training.slurm("scontrol", "show", "hostnames", row["nodes"]).split()
        assert row["failed"] in ("", nodes[-1]), row


def apply(fault: Fault, training: Training) -> None:
    """Inject a fault at the next gate, see what it does, and open the gate after it."""
    training.reaches_gate()
    begun, before, step = time.time(), training.starts(), training.gate
    lost = None
    ranks = [str(training.pid(rank)) for rank in (0, 1)]
    fault.inject(training)
    if fault.end is not None:
        row = training.next_end(before)
        assert fault.end in row["reason"], (fault.name, row)
        # At a gate, the step of the gate itself is not saved yet.
        lost, since_saved = row["steps_lost"], (step - 1) % gated.SAVE + 1
        # Ranks that Slurm ends save, if they have the time: KillWait of the lab is short.
        with_luck = {0, since_saved}
        possible = {SAVED: {0}, BY_SLURM: with_luck, "": with_luck}.get(fault.end, {since_saved})
        assert lost in possible, (fault.name, row)
        training.starts_again(before + 1)
        training.reaches_gate()
        # A rank of the earlier start would write into the same checkpoints.
        assert [ended(rank) for rank in ranks] == [True, True], fault.name
    # Shown with a failure, and by pytest -s: the figures of docs/restart.md.
    print(f"{fault.name}: after step {step}, {time.time() - begun:.1f} s, lost {lost}")  # noqa: T201
    training.open_gate()
