"""srun: Slurm starts every rank itself."""

from __future__ import annotations

from hpc_train.model.plan import JobVar, Launch, LaunchRequest, Text, Token
from hpc_train.plans.launchers.base import srun, wrapped


def command(request: LaunchRequest) -> Launch:
    """Return `srun … rank`, one task per rank."""
    tasks = request.topology.tasks_per_node
    rank_env: tuple[tuple[str, Token], ...] = (
        ("RANK", JobVar(name="SLURM_PROCID")),
        ("WORLD_SIZE", JobVar(name="SLURM_NTASKS")),
        ("LOCAL_RANK", JobVar(name="SLURM_LOCALID")),
        ("LOCAL_WORLD_SIZE", Text(text=str(tasks))),
    )
    argv = (*srun(request, tasks), *wrapped(request.command))
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=tasks)
