"""The current state of the lab: its nodes and its jobs."""

from __future__ import annotations

from hpc_train.lab import state_file
from hpc_train.lab.settings import Settings
from hpc_train.lab.state_file import Lab
from hpc_train.lab.system_programs import ask, slurm
from hpc_train.model.value import Value


class Job(Value, frozen=True, kw_only=True):
    """A job in the queue."""

    id: str
    name: str
    state: str
    nodes: str


class State(Value, frozen=True, kw_only=True):
    """State of a lab; nodes and jobs are unknown if its controller does not run."""

    faults: tuple[str, ...]
    nodes: dict[str, str]
    jobs: tuple[Job, ...]


def state_of(lab: Lab) -> State:
    """Query the state of the lab."""
    faults = state_file.faults(lab)
    # Without its controller every query would wait for many seconds.
    if any(fault.startswith(("slurmctld", "munged", "interface", "namespace")) for fault in faults):
        return State(faults=faults, nodes={}, jobs=())
    return State(faults=faults, nodes=node_states(lab.settings), jobs=_jobs(lab.settings))


def node_states(settings: Settings) -> dict[str, str]:
    """Return the state of each node, as sinfo prints it; empty if Slurm does not answer."""
    done = ask(slurm(settings.folder, "sinfo", "-h", "-N", "-o", "%N %T"))
    words = (line.split() for line in done.stdout.splitlines())
    return {name: state for name, state, *_ in words}


def _jobs(settings: Settings) -> tuple[Job, ...]:
    done = ask(slurm(settings.folder, "squeue", "-h", "-o", "%i|%T|%N|%j"))
    rows = (line.split("|", 3) for line in done.stdout.splitlines())
    return tuple(Job(id=i, state=state, nodes=nodes, name=name) for i, state, nodes, name in rows)
