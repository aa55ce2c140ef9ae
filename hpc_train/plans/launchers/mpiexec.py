"""mpiexec of Cray PALS, which starts ranks on HPE Cray systems with PBS.

It passes on all variables of the script. Options: HPE Cray PALS, mpiexec(1).
"""

from __future__ import annotations

from hpc_train.plans.explanations import Reason
from hpc_train.plans.launchers.base import Launcher, Program, texts, wrapped
from hpc_train.plans.plan import FirstOf, JobVar, Joined, Launch, LaunchRequest, Text, Token

# PALS's own variables, and those of its PMI.
_RANK = FirstOf(names=("PALS_RANKID", "PMI_RANK"))
_LOCAL_RANK = FirstOf(names=("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"))


def command(request: LaunchRequest) -> Launch:
    """Return `mpiexec -n W --ppn P …`: it takes the hosts from PBS."""
    topology = request.topology
    argv = (
        *texts("mpiexec", "-n", topology.world_size, "--ppn", topology.tasks_per_node),
        *_cores(request),
        *texts(*request.args),
        *wrapped(request),
    )
    first: Token = Text(text="0")
    rank_env: tuple[tuple[str, Token], ...] = (
        ("RANK", _RANK),
        ("WORLD_SIZE", Text(text=str(topology.world_size))),
        ("LOCAL_RANK", _LOCAL_RANK if topology.tasks_per_node > 1 else first),
        ("LOCAL_WORLD_SIZE", Text(text=str(topology.tasks_per_node))),
    )
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=topology.tasks_per_node)


def _cores(request: LaunchRequest) -> tuple[Token, ...]:
    """Bind each rank as the site says, else to as many neighbouring cores as it has.

    PALS numbers the second threads of the cores after all first ones: a depth in threads would give
    two ranks the same cores.
    """
    if request.binding.cpus:
        return texts("--cpu-bind", request.binding.cpus)
    cores = request.topology.cpus_per_task
    depth: Token = Joined(parts=(Text(text="--depth="), JobVar(name="cpus_per_rank")))
    if cores is not None:
        depth = Text(text=f"--depth={max(1, cores // request.threads_per_core)}")
    return (depth, *texts("--cpu-bind", "depth"))


MPIEXEC = Program(
    name="mpiexec",
    options={
        "-n": Reason(why="all ranks; PALS takes the hosts from PBS"),
        "--ppn": Reason(why="as many ranks on each node as the job requests"),
        "--depth": Reason(why="the cores of a rank"),
        "--cpu-bind": Reason(why="each rank keeps to cores of its own", trap="F33"),
    },
)
LAUNCHER = Launcher(
    command=command,
    programs=(MPIEXEC,),
    mpi=True,
    signal_obstacle="which signals mpiexec hands on is not documented",
    program="mpiexec",
    package="Cray PALS",
    typed={"n": "--ntasks", "np": "--ntasks", "ppn": "--tasks-per-node"},
)
