"""srun starts every rank itself; deepspeed, spawn and single: ranks without an agent.

deepspeed: start ranks as `deepspeed.init_distributed` and scripts for its launcher expect them.
DeepSpeed's own launcher is not used: it needs a file of hosts and remote access to them, its agents
overwrite Slurm's CUDA_VISIBLE_DEVICES with 0, 1, …, and they hide which rank failed.
`init_distributed` reads RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, so Slurm starts
the ranks (torchrun, where there is no Slurm), and each gets `--local_rank`, as DeepSpeed's launcher
adds it.

spawn: one process per node, which forks its own ranks (torch.multiprocessing). single: one process
without a launcher.
"""

import msgspec

from hpc_train.plans.launchers.agents import agent_here
from hpc_train.plans.launchers.base import (
    Launcher,
    each_node,
    no_options,
    node_rank,
    only_rank,
    srun,
    texts,
    wrapped,
)
from hpc_train.plans.plan import Definition, JobVar, Launch, LaunchRequest, LaunchShell, Text, Token


def by_srun(request: LaunchRequest) -> Launch:
    """Return `srun … rank`, one task per rank."""
    return every_rank(request, request.args)


def every_rank(
    request: LaunchRequest, args: tuple[str, ...], before: tuple[Token, ...] = ()
) -> Launch:
    """Return `srun … rank` with the site's binding of ranks; `before` precedes the program."""
    tasks = request.topology.tasks_per_node
    binding = request.binding
    words = (
        *((f"--cpu-bind={binding.cpus}",) if binding.cpus else ()),
        *((f"--gpu-bind={binding.gpus}",) if binding.gpus else ()),
        *args,
    )
    argv = (*srun(request, tasks, *words), *wrapped(request, *before))
    return Launch(argv=argv, rank_env=slurm_names(request), slots_per_node=tasks)


def on_each_node(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return srun with one task on each node.

    `--cpu-bind=none`: otherwise every rank inherits its agent's first core set.
    """
    return srun(request, 1, "--cpu-bind=none", *words)


def slurm_names(request: LaunchRequest) -> tuple[tuple[str, Token], ...]:
    """Return the variables of a rank that Slurm starts."""
    return (
        ("RANK", JobVar(name="SLURM_PROCID")),
        ("WORLD_SIZE", JobVar(name="SLURM_NTASKS")),
        ("LOCAL_RANK", JobVar(name="SLURM_LOCALID")),
        ("LOCAL_WORLD_SIZE", Text(text=str(request.topology.tasks_per_node))),
    )


SRUN = Launcher(
    command=by_srun,
    programs=("srun",),
    through_srun=True,
    ranks_are_tasks=True,
    mpi=True,
    data_parallel=True,
)


_WITHOUT = "--no_local_rank"
_WITH_LOCAL_RANK = Definition(
    name="with_local_rank",
    text='exec "$@" "--local_rank=$LOCAL_RANK"',
    comments=(
        "As DeepSpeed's own starter does; it expands in the rank.",
        f"shellcheck disable=SC2016,SC2034 # not with {_WITHOUT}",
    ),
)
_ADD_LOCAL_RANK = (*texts("sh", "-c"), JobVar(name=_WITH_LOCAL_RANK.name), *texts("rank"))


def deepspeed(request: LaunchRequest) -> Launch:
    """Return srun with one task per rank, or torchrun on this machine."""
    before = () if _WITHOUT in request.args else _ADD_LOCAL_RANK
    args = tuple(word for word in request.args if word != _WITHOUT)
    with_local_rank = msgspec.structs.replace(request, args=args)
    if request.batch.steps:
        launch = every_rank(with_local_rank, args, before)
    else:
        launch = Launch(argv=agent_here(with_local_rank, *before), slots_per_node=1)
    # The remaining variables that DeepSpeed's launcher sets for a rank.
    names: tuple[tuple[str, Token], ...] = (
        ("LOCAL_SIZE", Text(text=str(request.topology.tasks_per_node))),
        ("CROSS_RANK", node_rank(request)),
        ("CROSS_SIZE", Text(text=str(request.topology.nodes))),
    )
    shell = LaunchShell(definitions=(_WITH_LOCAL_RANK,))
    return msgspec.structs.replace(launch, rank_env=(*launch.rank_env, *names), shell=shell)


DEEPSPEED = Launcher(
    command=deepspeed,
    programs=("srun", "torchrun"),
    through_srun=True,
    ranks_are_tasks=True,
    typed={
        "num-gpus": "--tasks-per-node",
        "num-nodes": "--nodes",
        **dict.fromkeys(("hostfile", "master-addr", "master-port"), ""),
    },
)


def spawn(request: LaunchRequest) -> Launch:
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


SPAWN = Launcher(command=spawn, programs=("srun",), through_srun=True, one_node=True)


def single(request: LaunchRequest) -> Launch:
    """Return the program itself, as rank 0 of 1.

    Raises:
        PlanError: `launcher_args` are given.
    """
    no_options("single", request)
    return Launch(argv=wrapped(request), rank_env=only_rank(), slots_per_node=1, direct=True)


SINGLE = Launcher(command=single, one_node=True, one_rank=True, data_parallel=True)
