"""Faults of nodes, networks, daemons and disks: how each is injected into a training."""

import os
import time
from contextlib import suppress

from tests.end_to_end import daemons
from tests.end_to_end.gated import Training
from tests.submissions.waiting import ended, wait_for

WHOLE = "checkpoints/step-*[0-9]"
PAGE = 4096


def node_lost(training: Training) -> None:
    node = last_node(training)
    daemons.kill_node(node)
    training.slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=power")


def network_cut_for_a_while(training: Training) -> None:
    """Cut the network of the ranks while they train."""
    node = last_node(training)
    daemons.set_link(node, "ib0", "down")
    training.open_gate()
    time.sleep(5)
    step = f'"step":{training.gate},'
    assert step not in training.log()
    daemons.set_link(node, "ib0", "up")


def network_cut(training: Training) -> None:
    """Slurm gives the node up after SlurmdTimeout; its rank stays until somebody ends it."""
    node, rank = last_node(training), str(training.pid(1))
    for network in ("ib0", "eth0"):
        daemons.set_link(node, network, "down")
    training.becomes("PENDING")
    assert not ended(rank)
    daemons.kill_node(node)


def last_node(training: Training) -> str:
    """Return the node of rank 1."""
    nodes = training.user.run(training.name)["nodes"]
    return training.slurm("scontrol", "show", "hostnames", nodes).split()[-1]


def controller_restarted(training: Training) -> None:
    daemons.stop_controller()
    training.open_gate()
    training.reaches_gate()
    daemons.start_controller()
    training.becomes("RUNNING")


def slurmd_killed(training: Training) -> None:
    """Kill the slurmd of a node, alone, and start it again before Slurm gives the node up."""
    node = last_node(training)
    daemons.kill_slurmd(node)
    training.open_gate()
    training.reaches_gate()
    daemons.start_slurmd(node)
    training.becomes("RUNNING")


def slurmd_lost(training: Training) -> None:
    """Slurm gives the node up after SlurmdTimeout; its rank ends without the other one."""
    node, rank = last_node(training), str(training.pid(1))
    daemons.kill_slurmd(node)
    training.becomes("PENDING")
    wait_for(lambda: ended(rank))
    daemons.start_slurmd(node)


def disk_full(training: Training) -> None:
    """Fill the file system of the run while a checkpoint is due, then free it."""
    filler = training.folder.parent / "filler"
    newest = max(training.folder.glob(WHOLE))
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(PAGE)):
            pass
    # The next lines of the logs still fit; no checkpoint does.
    os.truncate(filler, filler.stat().st_size - 4 * PAGE)
    training.open_gate()
    training.reaches_gate()
    # A line of a log that was due while the files of the checkpoint were there may be lost.
    assert max(training.folder.glob(WHOLE)) == newest
    filler.unlink()


def results_gone(training: Training) -> None:
    """Take the run folder away while a checkpoint is due, and bring it back."""
    away = training.folder.with_name("away")
    log = away / "logs" / "rank-0.out"
    training.folder.rename(away)
    training.open_gate()
    wait_for(lambda: "no checkpoint: " in log.read_text())
    time.sleep(10)
    assert not training.folder.exists()
    away.rename(training.folder)
