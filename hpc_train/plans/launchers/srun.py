"""srun: Slurm starts every rank itself."""

from __future__ import annotations

from hpc_train.model.plan import Launch, LaunchRequest, Token
from hpc_train.plans.launchers.base import SRUN, Launcher, slurm_names, srun, wrapped


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


LAUNCHER = Launcher(
    command=command,
    programs=(SRUN,),
    through_srun=True,
    ranks_are_tasks=True,
    mpi=True,
    data_parallel=True,
)
