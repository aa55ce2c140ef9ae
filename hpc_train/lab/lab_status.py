"""A running lab: its identity, who may change it, its nodes and its jobs.

A running lab is stopped only by `hpctrain lab down`. It is identified by its folder and by the
namespaces that it was started from. Its daemons are identified by process id, start time and boot;
where these are not visible, its munged still answers in its folder.
"""

from __future__ import annotations

import socket
from pathlib import Path

from hpc_train.base.errors import LabError
from hpc_train.base.value import Value
from hpc_train.lab import state_file
from hpc_train.lab.daemons import is_alive, members
from hpc_train.lab.run_program import ask
from hpc_train.lab.settings import Settings
from hpc_train.lab.slurm_programs import slurm
from hpc_train.lab.state_file import Lab


def made_from() -> str:
    """Return the network and process namespaces of this process."""
    return " ".join(str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "pid"))


def is_live(lab: Lab) -> bool:
    """Whether any process of a lab still runs, also one that is not visible from here."""
    return any(is_alive(daemon) for daemon in lab.daemons) or munge_answers(lab.settings.folder)


def munge_answers(folder: str) -> bool:
    """Whether a process listens on the munge socket of a lab's folder."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(f"{folder}/munge/socket")
        except OSError:
            return False
    return True


def check_within_reach(lab: Lab) -> None:
    """Refuse to change a running lab if only a part of it is visible from here.

    Raises:
        LabError: it was started from another network or process namespace.
    """
    if lab.made_from not in ("", made_from()) and is_live(lab):
        raise LabError(
            f"the lab in {lab.settings.folder} is up, in another container or network namespace",
            f"where it was started: hpctrain lab down --dir {lab.settings.folder}",
        )


def check_unclaimed(settings: Settings) -> None:
    """Check that no lab with this folder or number runs without a readable record.

    The record may have been removed, or written by another version of hpctrain.

    Raises:
        LabError: one runs; the hint is the command that stops it.
    """
    said = f"and {state_file.record(settings)} does not describe it"
    if munge_answers(settings.folder):
        raise LabError(f"a lab is up in {settings.folder}, {said}", "hpctrain lab down   stops it")
    alive = sorted(members(state_file.existing_namespaces(settings.number)))
    if alive:
        names = ", ".join(f"{_name(pid)} (process {pid})" for pid in alive[:3])
        raise LabError(
            f"a lab is up on this machine, {said}: {names}", "hpctrain lab down   stops it"
        )


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "ended"


class LabJob(Value, frozen=True, kw_only=True):
    """A job in the queue."""

    id: str
    name: str
    state: str
    nodes: str


class LabState(Value, frozen=True, kw_only=True):
    """State of a lab; nodes and jobs are unknown if its controller does not run."""

    faults: tuple[str, ...]
    nodes: dict[str, str]
    jobs: tuple[LabJob, ...]


def state_of(lab: Lab) -> LabState:
    """Query the state of the lab."""
    faults = state_file.faults(lab)
    # Without its controller every query would wait for many seconds.
    if any(fault.startswith(("slurmctld", "munged", "interface", "namespace")) for fault in faults):
        return LabState(faults=faults, nodes={}, jobs=())
    return LabState(faults=faults, nodes=node_states(lab.settings), jobs=_jobs(lab.settings))


def node_states(settings: Settings) -> dict[str, str]:
    """Return the state of each node, as sinfo prints it; empty if Slurm does not answer."""
    done = ask(slurm(settings, "sinfo", "-h", "-N", "-o", "%N %T"))
    words = (line.split() for line in done.stdout.splitlines())
    return {name: state for name, state, *_ in words}


def _jobs(settings: Settings) -> tuple[LabJob, ...]:
    done = ask(slurm(settings, "squeue", "-h", "-o", "%i|%T|%N|%j"))
    rows = (line.split("|", 3) for line in done.stdout.splitlines())
    return tuple(
        LabJob(id=i, state=state, nodes=nodes, name=name) for i, state, nodes, name in rows
    )
