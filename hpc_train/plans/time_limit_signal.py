"""The signal before the time limit, at which ranks save their state: receiver and delivery."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.job import SourcedJob
from hpc_train.model.plan import Setting
from hpc_train.model.site import SourcedSite
from hpc_train.plans.context import Context, from_job
from hpc_train.plans.other_launchers import other_launchers

# Slurm stores the number of seconds in 16 bits.
_LONGEST_S = 65535
_KEY = "signal_before_end"


def signal_settings(job: SourcedJob) -> dict[str, Setting]:
    """Return the job's setting."""
    found = from_job(job, _KEY, "USR1 reaches every rank, up to a minute earlier than asked")
    return {_KEY: found} if found else {}


def signal_directives(context: Context) -> tuple[tuple[str, str], ...]:
    """Request a signal to the ranks, or to the script if the ranks are not tasks of Slurm.

    Raises:
        PlanError: the launcher or a shared allocation does not support it, or it would be sent
        before the start.
    """
    lead = context.job.value.signal_before_end
    if lead is None or context.site.value.scheduler != "slurm":
        return ()
    _check(context)
    who = "" if context.by_srun else "B:"
    return (("signal", f"{who}USR1@{int(lead)}"),)


def passes_signal(directives: tuple[tuple[str, str], ...]) -> bool:
    """Return whether the script receives the signal and must forward it."""
    return dict(directives).get("signal", "").startswith("B:")


def check_signal(job: SourcedJob, site: SourcedSite, *, nested: bool) -> tuple[str, ...]:
    """Warn if no signal is sent.

    Raises:
        PlanError: the job's time limit is not that of its allocation.
    """
    if job.value.signal_before_end is None:
        return ()
    if nested:
        raise PlanError(
            f"{job.origin(_KEY)}: {_KEY} needs a time limit of the run's own; with placement "
            "nested the allocation has it",
            "leave placement out: independent is the default",
        )
    if site.value.scheduler != "slurm":
        return (f"{job.origin(_KEY)}: {site.value.name} sends no signal before the time limit",)
    return ()


def _check(context: Context) -> None:
    job, launcher = context.job, context.launcher
    lead, limit = job.value.signal_before_end or 0, job.value.resources.time
    most = min(_LONGEST_S, limit - 1) if limit else _LONGEST_S
    if lead > most:
        reason = f"the time limit is {limit}" if limit and limit <= _LONGEST_S else "Slurm's most"
        raise PlanError(
            f"{job.origin(_KEY)}: {_KEY} = {lead} is too long: at most {most} s ({reason})"
        )
    if launcher.signal_obstacle:
        raise PlanError(
            f"{job.origin(_KEY)}: {launcher.signal_obstacle}",
            f"{other_launchers(context)}, or leave {_KEY} out",
        )
