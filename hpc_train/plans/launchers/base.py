"""What every launcher is, and the pieces that they share."""

from __future__ import annotations

import re
from typing import Protocol

from hpc_train.errors import PlanError
from hpc_train.model.plan import JobVar, Launch, LaunchRequest, Text, Token
from hpc_train.plans.gpu_request import GpuRequest, gpu_options

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


def wrapped(request: LaunchRequest, *before: Token) -> tuple[Token, ...]:
    """Return the command, with what stands `before` it, below the per-rank wrapper.

    The wrapper stays on the host where it can: an image need not have a shell, and what the
    wrapper records is there when the image cannot be opened.
    """
    around = request.container.around if request.container else ()
    return (*_wrapper(request), *around, *before, *texts(*request.command))


def wrapped_inside(request: LaunchRequest, *before: Token) -> tuple[Token, ...]:
    """Return the command below its wrapper, for an agent that is in the container itself."""
    return (*_wrapper(request), *before, *texts(*request.command))


def _wrapper(request: LaunchRequest) -> tuple[Token, ...]:
    """An image may have no bash; for images the script writes the wrapper in words of sh."""
    return (*texts("sh" if request.container else "bash", "-c"), RANK_WRAPPER, Text(text="rank"))


def agents(request: LaunchRequest, agent: tuple[Token, ...], *srun_words: str) -> tuple[Token, ...]:
    """Return argv that starts `agent` once on each node, below the wrapper of a node.

    Without an agent the node's wrapper starts what follows. `--cpu-bind=none`: otherwise every
    rank inherits the agent's first core set.
    """
    starter = srun(request, 1, "--cpu-bind=none", *srun_words)
    shell = "sh" if request.container and request.container.step else "bash"
    return (*starter, *texts(shell, "-c"), NODE_WRAPPER, *texts("node"), *agent)


def only_rank() -> tuple[tuple[str, Token], ...]:
    """Return the names of the one rank of a job."""
    counts = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    return tuple((name, Text(text=value)) for name, value in counts.items())


def no_options(name: str, request: LaunchRequest) -> None:
    """Refuse `launcher_args` where there is no launcher to take them.

    Raises:
        PlanError: there are some.
    """
    if request.args:
        raise PlanError(
            f"launcher_args {' '.join(request.args)}: {name} starts the program itself here",
            "options of the program belong to its command",
        )


def slurm_names(request: LaunchRequest) -> tuple[tuple[str, Token], ...]:
    """Return the names of a rank that Slurm started."""
    return (
        ("RANK", JobVar(name="SLURM_PROCID")),
        ("WORLD_SIZE", JobVar(name="SLURM_NTASKS")),
        ("LOCAL_RANK", JobVar(name="SLURM_LOCALID")),
        ("LOCAL_WORLD_SIZE", Text(text=str(request.topology.tasks_per_node))),
    )


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
        *(("--relative=0",) if request.nested else ()),
        *_gpus(request, slots_per_node),
        *request.srun_args,
        *extra,
    ) + (request.container.step if request.container else ())


def _gpus(request: LaunchRequest, slots_per_node: int) -> tuple[str, ...]:
    """Say how many GPUs are the step's, in an allocation that may be larger.

    A step that asks for none gets all of the job's; where the job asks per task, it inherits that
    number even with fewer tasks.
    """
    if not request.nested and request.gpu_request != "gpus-per-task":
        return ()
    asked = GpuRequest(form=request.gpu_request, kind=request.gpu_type)
    topology = request.topology
    gpus = gpu_options(asked, topology.gpus_per_node, topology.nodes, slots_per_node)
    return tuple(f"--{option}={value}" for option, value in gpus.items())
