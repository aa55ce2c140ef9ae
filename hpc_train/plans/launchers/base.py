"""What every launcher is, and the pieces that they share."""

from __future__ import annotations

import re
from typing import Protocol

from hpc_train.model.plan import JobVar, Launch, LaunchRequest, Text, Token
from hpc_train.plans.directives import gpu_options

_PYTHON = re.compile(r"(?:^|/)python[0-9.]*$")
RANK_WRAPPER = JobVar(name="rank_wrapper")
NODE_WRAPPER = JobVar(name="node_wrapper")


class Launcher(Protocol):
    """Turn a request into argv."""

    def __call__(self, request: LaunchRequest) -> Launch:
        """Return how to start the ranks.

        Raises:
            PlanError: this launcher cannot carry the topology.
        """


def texts(*words: str | int) -> tuple[Token, ...]:
    """Return literal arguments."""
    return tuple(Text(text=str(word)) for word in words)


def wrapped(command: tuple[str, ...]) -> tuple[Token, ...]:
    """Return the command below the per-rank wrapper, which the script defines."""
    return (*texts("bash", "-c"), RANK_WRAPPER, *texts("rank", *command))


def python_of(command: tuple[str, ...]) -> str | None:
    """Return the interpreter that a command starts, if it starts one."""
    return command[0] if _PYTHON.search(command[0]) else None


def srun(request: LaunchRequest, slots_per_node: int, *extra: str) -> tuple[Token, ...]:
    """Return srun with every count explicit.

    `--cpus-per-task` stands on srun itself because Slurm 22.05 and 23.02 do not take it from the
    job (SchedMD CHANGELOG 22.05, 23.11).
    """
    topology = request.topology
    cpus = topology.cpus_per_task * topology.tasks_per_node // slots_per_node
    mpi = (f"--mpi={request.mpi}",) if request.mpi else ()
    return texts(
        "srun",
        f"--nodes={topology.nodes}",
        f"--ntasks={topology.nodes * slots_per_node}",
        f"--ntasks-per-node={slots_per_node}",
        f"--cpus-per-task={cpus}",
        *mpi,
        *(_share(request) if request.nested else ()),
        *request.srun_args,
        *extra,
    )


def _share(request: LaunchRequest) -> tuple[str, ...]:
    """Say which part of a larger allocation is the step's.

    `--relative=0` starts at its first node; a step that asks for no GPUs gets all of the job's.
    """
    gpus = gpu_options(request.gpu_request, request.topology.gpus_per_node)
    return ("--relative=0", *(f"--{option}={value}" for option, value in gpus.items()))
