"""mpirun of Open MPI: mapping and binding always explicit, one `-x` for each variable.

Without `--bind-to`, Open MPI 4 binds to a core when there are two ranks or fewer and to a socket
above, so a rank with several threads would lose its cores. Nothing here names TCP, as other
starters of MPI do: it turns InfiniBand off.
"""

from __future__ import annotations

from hpc_train.model.plan import JobVar, Launch, LaunchRequest, Token
from hpc_train.model.variable import FROM_SCRIPT
from hpc_train.plans.launchers.base import texts, wrapped
from hpc_train.plans.openmpi import bind_word


def command(request: LaunchRequest) -> Launch:
    """Return `mpirun -np W …`; inside a Slurm job Open MPI takes the hosts from Slurm."""
    topology = request.topology
    hosts = texts("--host", f"localhost:{topology.tasks_per_node}")
    passed = request.container.passed if request.container else ()
    names = dict.fromkeys((*FROM_SCRIPT, *request.exported, *passed))
    argv = (
        *texts("mpirun", "-np", topology.world_size),
        *(hosts if request.scheduler == "local" else ()),
        *_places(request),
        *(token for name in names for token in texts("-x", name)),
        *texts(*request.mpirun_args, *request.args),
        *wrapped(request),
    )
    rank_env: tuple[tuple[str, Token], ...] = (
        ("RANK", JobVar(name="OMPI_COMM_WORLD_RANK")),
        ("WORLD_SIZE", JobVar(name="OMPI_COMM_WORLD_SIZE")),
        ("LOCAL_RANK", JobVar(name="OMPI_COMM_WORLD_LOCAL_RANK")),
        ("LOCAL_WORLD_SIZE", JobVar(name="OMPI_COMM_WORLD_LOCAL_SIZE")),
    )
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=topology.tasks_per_node)


def _places(request: LaunchRequest) -> tuple[Token, ...]:
    """Only a rank that is bound to cores is mapped with its number of them (PE)."""
    topology = request.topology
    word = bind_word(request.binding.mpirun, request.openmpi)
    cores = f":PE={topology.cpus_per_task}" if word == "core" else ""
    return texts("--map-by", f"ppr:{topology.tasks_per_node}:node{cores}", "--bind-to", word)
