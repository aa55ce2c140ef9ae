"""srun: Slurm starts every rank itself."""

from __future__ import annotations

from hpc_train.plans.launchers.base import SRUN, Launcher, srun, wrapped
from hpc_train.plans.plan import JobVar, Launch, LaunchRequest, Text, Token


def command(request: LaunchRequest) -> Launch:
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


LAUNCHER = Launcher(
    command=command,
    programs=(SRUN,),
    through_srun=True,
    ranks_are_tasks=True,
    mpi=True,
    data_parallel=True,
)
