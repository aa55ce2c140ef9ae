"""The faults of docs/restart.md: how each is injected, and what has to end the start."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.end_to_end import daemons, gated
from tests.end_to_end.gated import Training
from tests.end_to_end.machine_faults import (
    WHOLE,
    controller_restarted,
    disk_full,
    network_cut,
    network_cut_for_a_while,
    node_lost,
    results_gone,
    slurmd_killed,
    slurmd_lost,
)
from tests.submissions.waiting import ended, wait_for


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`end` is in the row of the start that it ended; None: the start goes on."""

    name: str
    inject: Callable[[Training], None]
    end: str | None


def time_limit(training: Training) -> None:
    started = training.user.run(training.name)["started"]
    minutes = int((time.time() - started) / 60) + 2
    training.update(f"timelimit={minutes}")
    training.becomes("PENDING")
    training.update("timelimit=9")


def signalled(training: Training) -> None:
    training.slurm("scancel", "--signal=USR1", training.number)


def signalled_without_accounting(training: Training) -> None:
    """The job is queued again, and starts, while slurmdbd is down."""
    daemons.stop_accounting()
    before = training.starts()
    signalled(training)
    training.starts_again(before + 1)
    daemons.start_accounting()


def preempted_with_grace(training: Training) -> None:
    """As `preempted`, with time between TERM and KILL."""
    qos = ("sacctmgr", "-i", "modify", "qos", "normal", "set")
    training.slurm(*qos, "gracetime=60")
    preempted(training, "urgent-grace")
    training.slurm(*qos, "gracetime=0")


def preempted(training: Training, name: str = "urgent") -> None:
    size = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 8, "gpus_per_node": 0, "time": "5m"}
    urgent: dict[str, Any] = {
        "name": name,
        "command": ["true"],
        "launcher": "srun",
        "qos": "high",
    }
    urgent |= {"resources": size, "directives": gated.only(NODES[training.name])}
    user = training.user
    user.submit(user.write("urgent.yaml", urgent))
    wait_for(lambda: user.run(name)["state"] == "COMPLETED", every_s=gated.POLL_S)


def requeued(training: Training) -> None:
    training.slurm("scontrol", "requeue", training.number)


def corrupted(training: Training) -> None:
    """Damage the newest checkpoint while the job waits."""
    requeued(training)
    training.becomes("PENDING")
    newest = max(training.folder.glob(WHOLE))
    data = next(newest.glob("__0_*.distcp"))
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)


def rank_killed(training: Training) -> None:
    os.kill(training.pid(1), signal.SIGKILL)


def out_of_memory(training: Training) -> None:
    """Limit what a rank may allocate from now on, and let it ask for more.

    Where no memory cgroup can be made, the rank is killed as the kernel would do.
    """
    rank = training.pid(1)
    fill = training.user.folder / training.name / "fill-1"
    if (group := memory_cgroup()) is None:
        os.kill(rank, signal.SIGKILL)
    else:
        limit_memory(group, rank)
        fill.touch()
        wait_for(lambda: ended(str(rank)))
        events = [file for file in group.glob("memory.*") if file.name in OOM_EVENTS]
        assert any("oom_kill 1" in file.read_text().splitlines() for file in events)
        fill.unlink()
        wait_for(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
    wait_for(
        lambda: "memory ran out" in training.user.hpctrain("diagnose", training.folder).stdout,
        every_s=2 * gated.POLL_S,
    )


# Of the first and the second version of cgroups.
OOM_EVENTS = ("memory.oom_control", "memory.events")
LIMITS = {"memory.limit_in_bytes": 64 << 20, "memory.max": 64 << 20, "memory.swap.max": 0}


def memory_cgroup() -> Path | None:
    """Make a cgroup with a limit of memory, of either version; None without the right."""
    for parent in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
        group = parent / "hpctrain-out-of-memory"
        with suppress(OSError):
            group.mkdir()
            if any((group / name).exists() for name in OOM_EVENTS):
                return group
            group.rmdir()
    return None


def limit_memory(group: Path, process: int) -> None:
    for name, limit in LIMITS.items():
        if (group / name).exists():
            (group / name).write_text(str(limit))
    (group / "cgroup.procs").write_text(f"{process}\n")


def agent_killed(training: Training) -> None:
    """Kill it, and what is below it as Slurm does with cgroups, which the lab has not."""
    for pid in gated.down_to_rank(training.pid(1)):
        os.kill(pid, signal.SIGKILL)


BY_SLURM = "ended by Slurm: preempted, requeued or cancelled"
SAVED = "checkpoint saved on request"
CONTROLLER = Fault(name="slurmctld restarted", inject=controller_restarted, end=None)
# By training; one loses nodes, of another a node may be the first to fail twice.
NODES = {"one": "1,2,9", "two": "3,4", "three": "5,6,7,8"}
FAULTS = {
    "one": (
        Fault(
            name="scancel --signal=USR1, slurmdbd down",
            inject=signalled_without_accounting,
            end=SAVED,
        ),
        Fault(name="SIGKILL of a rank", inject=rank_killed, end="exit code "),
        Fault(name="results folder gone for 10 s", inject=results_gone, end=None),
        Fault(name="SIGKILL of torchrun's agent", inject=agent_killed, end="exit code "),
    ),
    "two": (
        Fault(name="time limit", inject=time_limit, end=SAVED),
        Fault(name="slurmd of a node killed", inject=slurmd_killed, end=None),
        Fault(name="preemption by a higher QOS", inject=preempted, end=BY_SLURM),
        Fault(name="preemption with a grace time", inject=preempted_with_grace, end=SAVED),
        Fault(name="slurmd of a node not started again", inject=slurmd_lost, end=""),
    ),
    "three": (
        Fault(name="scontrol requeue, newest checkpoint damaged", inject=corrupted, end=BY_SLURM),
        Fault(name="out of memory", inject=out_of_memory, end="exit code "),
        Fault(name="disk full", inject=disk_full, end=None),
        Fault(name="network cut for 5 s", inject=network_cut_for_a_while, end=None),
        Fault(name="a node lost", inject=node_lost, end=""),
        Fault(name="network cut", inject=network_cut, end=""),
    ),
}
# Those that differ most: a checkpoint on request, one without, a damaged one, and none at all.
FEW = {
    "one": (FAULTS["one"][0], FAULTS["one"][2]),
    "three": (FAULTS["three"][0], FAULTS["three"][2]),
}


def steps(table: Mapping[str, tuple[Fault, ...]]) -> int:
    """Return the steps of all gates: a fault that does not end the start passes two.

    One training has that of the controller as well.
    """
    return gated.GATE * max(
        sum(1 if fault.end is not None else 2 for fault in (CONTROLLER, *faults))
        for faults in table.values()
    )
