"""spawn: one process per node, which forks its own ranks (torch.multiprocessing)."""

from __future__ import annotations

from hpc_train.plans.launchers.base import SRUN, Launcher, each_node, no_options, node_rank, wrapped
from hpc_train.plans.plan import Launch, LaunchRequest, Text, Token


def command(request: LaunchRequest) -> Launch:
    """Return the program itself, once per node; it reads LOCAL_WORLD_SIZE and NODE_RANK.

    Raises:
        PlanError: `launcher_args` are given.
    """
    topology = request.topology
    starter = each_node(request, *request.args)
    rank_env: tuple[tuple[str, Token], ...] = (
        ("NODE_RANK", node_rank(request)),
        ("NNODES", Text(text=str(topology.nodes))),
        ("WORLD_SIZE", Text(text=str(topology.world_size))),
        ("LOCAL_WORLD_SIZE", Text(text=str(topology.tasks_per_node))),
    )
    if not starter:
        no_options("spawn", request)
    argv = (*starter, *wrapped(request))
    return Launch(
        argv=argv, rank_env=rank_env, slots_per_node=1, forks_ranks=True, direct=not starter
    )


LAUNCHER = Launcher(command=command, programs=(SRUN,), through_srun=True, one_node=True)
