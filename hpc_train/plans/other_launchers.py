"""The launchers of a site that can start a job, for messages that refuse another one."""

from __future__ import annotations

from collections.abc import Callable

from hpc_train.base.errors import PlanError
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context
from hpc_train.plans.launchers.base import Launcher, find_launcher

Fact = Callable[[Launcher], bool]


def other_launchers(context: Context, fact: Fact = lambda _: True) -> str:
    """Return a hint that names the launchers with a fact that the site offers for this job."""
    allowed = context.site.value.launchers.allowed
    known = (find_launcher(name) for name in allowed if name != context.launcher.name)
    able = [one.name for one in known if fact(one) and _suits(one, context)]
    if not able:
        return f"{context.site.value.name} offers no launcher for such a job"
    return f"use --launcher with one of {', '.join(able)}" if able[1:] else f"--launcher {able[0]}"


def check_launcher(context: Context, topology: Topology) -> None:
    """Refuse a launcher that cannot start so many ranks, or not without Slurm.

    Raises:
        PlanError: with the launchers of the site that can.
    """
    launcher = context.launcher
    if launcher.one_rank and topology.world_size > 1:
        raise PlanError(
            f"the launcher {launcher.name} runs one process, not {topology.world_size} ranks",
            f"{other_launchers(context)}, or one task on one node",
        )
    if _needs_slurm(launcher, context):
        raise PlanError(
            f"the launcher {launcher.name} starts ranks in a job of Slurm; there is none here",
            other_launchers(context),
        )


def _needs_slurm(launcher: Launcher, context: Context) -> bool:
    """Whether a launcher starts ranks as tasks of Slurm, which the scheduler is not."""
    # On this machine, srun may run in an allocation by hand.
    other = bool(context.batch.starter) and launcher.ranks_are_tasks
    return not context.batch.steps and (launcher.slurm_only or other)


def _suits(launcher: Launcher, context: Context) -> bool:
    """Whether a launcher can start the ranks of the job, by its facts.

    One process is never an alternative: the job was refused for what its ranks do together.
    """
    job = context.job.value
    asks_for_mpi = job.mpi or job.backend == "mpi"
    return not (
        launcher.one_rank
        or (launcher.one_node and (job.resources.nodes or 1) > 1)
        or _needs_slurm(launcher, context)
        or (asks_for_mpi and not launcher.mpi)
        or (job.elastic and not launcher.elastic)
        or (job.signal_before_end and launcher.signal_obstacle)
    )
