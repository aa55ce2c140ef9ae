"""ibrun: TACC's launcher, which uses the MPI of the loaded module."""

from __future__ import annotations

from hpc_train.base.errors import PlanError
from hpc_train.plans.explanations import Reason
from hpc_train.plans.launchers.base import Launcher, Program, texts, wrapped
from hpc_train.plans.plan import FirstOf, Launch, LaunchRequest, Text, Token

# Open MPI, MVAPICH, and Hydra of Intel MPI and MPICH: the module determines which one.
_RANK = FirstOf(names=("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK"))
_LOCAL_RANK = FirstOf(
    names=(
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "PMI_LOCAL_RANK",
    )
)


def command(request: LaunchRequest) -> Launch:
    """Return `ibrun -n W -o 0 …`: it takes hosts from Slurm, and binds ranks itself.

    Raises:
        PlanError: the job is one of several in an allocation.
    """
    topology = request.topology
    if request.nested:
        # It places ranks by the slots of the whole allocation, not by those of a run.
        raise PlanError(
            "the launcher ibrun cannot keep to a part of an allocation (placement nested)",
            "leave placement out: independent is the default",
        )
    argv = (
        *texts("ibrun", "-n", topology.world_size, "-o", 0, *request.args),
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


IBRUN = Program(
    name="ibrun",
    options={
        "-n": Reason(why="all ranks; ibrun takes the hosts from the allocation"),
        "-o": Reason(why="the first of them: the ranks begin at the allocation's first slot"),
    },
)
LAUNCHER = Launcher(
    command=command,
    programs=(IBRUN,),
    mpi=True,
    slurm_only=True,
    signal_obstacle="which signals ibrun hands on depends on the MPI below it",
    program="ibrun",
)
