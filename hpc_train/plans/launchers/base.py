"""The definition of a launcher, and functions that launchers share."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

import msgspec

from hpc_train.base.errors import PlanError
from hpc_train.base.registry import BUILT_IN, load, resolve
from hpc_train.base.values import Value
from hpc_train.jobs.job import Topology
from hpc_train.plans.explanations import Reason
from hpc_train.plans.plan import FirstOf, JobVar, Joined, Launch, LaunchRequest, Text, Token

_PYTHON = re.compile(r"(?:^|/)python[0-9.]*$")
# Options of srun that end a step after a failure, and their spellings.
_GUARDS = {
    "--kill-on-bad-exit=1": re.compile(r"--kill-on-bad-exit(=.*)?|-K[01]?"),
    "--wait=60": re.compile(r"--wait(=.*)?|-W[0-9]*"),
}
RANK_WRAPPER = JobVar(name="rank_wrapper")
NODE_WRAPPER = JobVar(name="node_wrapper")


# Modules of Python that are a program.
MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
}


class Launcher(Value, frozen=True, kw_only=True):
    """A launcher, with all its facts.

    Args:
        command: returns argv for a request; raises PlanError if it does not support the request.
        name: its name in jobs and profiles; that of the registry, set by `find_launcher`.
        programs: the programs whose options it writes, in the order of argv.
        reasons: the reason of each option of the last one, if explanations.yaml has none.
        through_srun: in a Slurm job, argv begins with srun.
        ranks_are_tasks: in a Slurm job, each rank is a task, which Slurm may bind to a GPU.
        mpi: MPI starts its ranks, so that they may use the backend mpi.
        open_mpi: it is Open MPI's own, and reads `OMPI_MCA_…` and `launchers.mpirun_args`.
        slurm_only: starts ranks only in a job of Slurm.
        one_node: starts ranks on one node only.
        one_rank: it starts one process only.
        data_parallel: a rank with several GPUs may use DataParallel.
        elastic: its job can continue with fewer nodes.
        signal_obstacle: why ranks do not receive the signal before the time limit; empty if they
        do. program: must be on the PATH; empty if Slurm or the user's Python provides it.
        package: the package of `program`, and how to install it.
        typed: option of its own command line -> that of hpctrain; empty if hpctrain does it itself.
    """

    command: Callable[[LaunchRequest], Launch]
    name: str = ""
    programs: tuple[str, ...] = ()
    reasons: Mapping[str, Reason] = MappingProxyType({})
    through_srun: bool = False
    ranks_are_tasks: bool = False
    mpi: bool = False
    open_mpi: bool = False
    slurm_only: bool = False
    one_node: bool = False
    one_rank: bool = False
    data_parallel: bool = False
    elastic: bool = False
    signal_obstacle: str = ""
    program: str = ""
    package: str = ""
    typed: Mapping[str, str] = MappingProxyType({})


def find_launcher(name: str) -> Launcher:
    """Return the launcher with a name; a plug-in may be a function, which gets default facts.

    Raises:
        UnknownNameError: there is no such launcher.
        PluginError: the plug-in cannot be loaded.
    """
    found = load("launchers", name)
    if isinstance(found, Launcher):
        return msgspec.structs.replace(found, name=name)
    return Launcher(name=name, command=cast(Callable[[LaunchRequest], Launch], found))


def launcher_called(word: str) -> str:
    """Return the launcher whose program or module has a name, or nothing."""
    program = MODULES.get(word, word)
    every = (find_launcher(name) for name in BUILT_IN["launchers"])
    return next((one.name for one in every if program in one.programs[-1:]), "")


def texts(*words: str | int) -> tuple[Token, ...]:
    """Return literal arguments."""
    return tuple(Text(text=str(word)) for word in words)


def wrapped(request: LaunchRequest, *before: Token) -> tuple[Token, ...]:
    """Return the command, preceded by `before`, under the wrapper of each rank.

    The wrapper runs on the host if possible: an image may have no shell, and the wrapper can also
    record that the image could not be opened.
    """
    around = request.container.around if request.container else ()
    return (*_wrapper(request), *around, *before, *texts(*request.command))


def wrapped_inside(request: LaunchRequest, *before: Token) -> tuple[Token, ...]:
    """Return the command under its wrapper, for an agent that runs inside the container."""
    return (*_wrapper(request), *before, *texts(*request.command))


def _wrapper(request: LaunchRequest) -> tuple[Token, ...]:
    """An image may have no bash, so the script writes the wrapper in POSIX sh."""
    return (*texts("sh" if request.container else "bash", "-c"), RANK_WRAPPER, Text(text="rank"))


def each_node(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return the words that start one process on each node; none if a job has only this machine.

    `words` are options of the program that starts them.
    """
    if not request.batch.starter:
        return ()
    starter = cast(Callable[..., tuple[Token, ...]], resolve(request.batch.starter))
    return starter(request, *words)


def on_this_node(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return no words that start a process on each node, for a script that runs on each."""
    return ()


def node_rank(request: LaunchRequest) -> Token:
    """Return the number of the node, in a process that `each_node` starts."""
    names = request.batch.node_rank
    if not names:
        return Text(text="0")
    return FirstOf(names=names) if names[1:] else JobVar(name=names[0])


def agents(request: LaunchRequest, agent: tuple[Token, ...], *words: str) -> tuple[Token, ...]:
    """Return argv that starts `agent` once on each node, under the wrapper of a node.

    Without an agent the node's wrapper starts the following command.
    """
    starter = each_node(request, *words)
    shell = "sh" if request.container and request.container.step else "bash"
    return (*starter, *texts(shell, "-c"), NODE_WRAPPER, *texts("node"), *agent)


def only_rank() -> tuple[tuple[str, Token], ...]:
    """Return the variables of the only rank of a job."""
    counts = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    return tuple((name, Text(text=value)) for name, value in counts.items())


def no_options(name: str, request: LaunchRequest) -> None:
    """Refuse `launcher_args` if there is no launcher to use them.

    Raises:
        PlanError: there are some.
    """
    if request.args:
        raise PlanError(
            f"launcher_args {' '.join(request.args)}: {name} starts the program itself here",
            "options of the program belong to its command",
        )


def python_of(command: tuple[str, ...]) -> str | None:
    """Return the interpreter that a command starts, if it starts one."""
    return command[0] if _PYTHON.search(command[0]) else None


# The status block of the script sets the variable. `--relative=0` is not enough: from Slurm 24.11
# on, it counts from the node after the step before (next_step_node_inx in src/stepmgr/stepmgr.c).
_NODE_LIST = Joined(parts=(Text(text="--nodelist="), JobVar(name="run_nodes")))


def srun(request: LaunchRequest, slots_per_node: int, *extra: str) -> tuple[Token, ...]:
    """Return srun with every count explicit.

    `--cpus-per-task` is an option of srun because Slurm 22.05 and 23.02 do not inherit it from the
    job (SchedMD CHANGELOG 22.05, 23.11).
    """
    topology = request.topology
    mpi = (f"--mpi={request.mpi}",) if request.mpi else ()
    tasks = topology.nodes * slots_per_node
    counts = (
        *texts("srun", f"--nodes={topology.nodes}", f"--ntasks={tasks}"),
        *texts(f"--ntasks-per-node={slots_per_node}"),
        _cores(topology, slots_per_node),
        *texts(*mpi),
    )
    # Options of the user take precedence.
    stated = (*request.srun_args, *extra)
    options = texts(
        *_step_gpus(request, slots_per_node),
        *(one for one, named in _GUARDS.items() if not any(map(named.fullmatch, stated))),
        *request.srun_args,
        *extra,
    )
    image = request.container.step if request.container else ()
    return (*counts, *((_NODE_LIST,) if request.nested else ()), *options, *image)


def _cores(topology: Topology, slots_per_node: int) -> Token:
    """State the cores of a slot, by a variable if only the job knows them."""
    if topology.cpus_per_task is not None:
        cpus = topology.cpus_per_task * topology.tasks_per_node // slots_per_node
        return Text(text=f"--cpus-per-task={cpus}")
    name = "cpus_per_rank" if slots_per_node > 1 else "cpus_on_node"
    return Joined(parts=(Text(text="--cpus-per-task="), JobVar(name=name)))


def gpu_options(
    form: str, gpu_type: str | None, gpus_per_node: int, nodes: int, slots_per_node: int
) -> dict[str, str]:
    """Request GPUs per node if the site allows it, so that all GPUs are visible to every rank.

    Raises:
        PlanError: GPUs that cannot be counted per task.
    """
    if not gpus_per_node or form == "none":
        return {}
    kind = f"{gpu_type}:" if gpu_type else ""
    if form == "gres":
        return {"gres": f"gpu:{kind}{gpus_per_node}"}
    if form == "gpus":
        return {"gpus": f"{kind}{gpus_per_node * nodes}"}
    if form == "gpus-per-task":
        if gpus_per_node % slots_per_node:
            raise PlanError(
                f"{gpus_per_node} GPUs of a node for {slots_per_node} tasks: the site counts GPUs "
                "per task (gpu_request: gpus-per-task)",
                "as many GPUs on each node as ranks, or a launcher that starts once on a node",
            )
        return {"gpus-per-task": f"{kind}{gpus_per_node // slots_per_node}"}
    return {"gpus-per-node": f"{kind}{gpus_per_node}"}


def _step_gpus(request: LaunchRequest, slots_per_node: int) -> tuple[str, ...]:
    """State the number of GPUs of the step, because the allocation may be larger.

    A step without a request gets all GPUs of the job; if the job requests GPUs per task, the step
    inherits that number even with fewer tasks.
    """
    if not request.nested and request.gpu_request != "gpus-per-task":
        return ()
    topology, form, gpu_type = request.topology, request.gpu_request, request.gpu_type
    gpus = gpu_options(form, gpu_type, topology.gpus_per_node, topology.nodes, slots_per_node)
    return tuple(f"--{option}={value}" for option, value in gpus.items())
