"""The signal before the time limit, at which ranks save what they have: who gets it, and how."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.plan import Launch, Setting, Text
from hpc_train.plans.context import Job, Site, from_job

# Slurm keeps the number of seconds in 16 bits.
_LONGEST_S = 65535
_KEY = "signal_before_end"


def signal_settings(job: Job) -> dict[str, Setting]:
    """Return what the job says of it."""
    found = from_job(job, _KEY, "USR1 reaches every rank, up to a minute earlier than asked")
    return {_KEY: found} if found else {}


def signal_directives(job: Job, site: Site, launch: Launch) -> tuple[tuple[str, str], ...]:
    """Ask Slurm to signal the ranks; the script, where they are none of Slurm's own.

    Raises:
        PlanError: the launcher or an allocation of several runs cannot carry it, or it comes
            before the start.
    """
    lead = job.value.signal_before_end
    if lead is None or site.value.scheduler != "slurm":
        return ()
    _check(job, launch)
    who = "" if _is_slurms(launch) else "B:"
    return (("signal", f"{who}USR1@{int(lead)}"),)


def passes_signal(directives: tuple[tuple[str, str], ...]) -> bool:
    """Say whether the script itself gets the signal, and has to hand it on."""
    return dict(directives).get("signal", "").startswith("B:")


def check_signal(job: Job, site: Site, *, nested: bool) -> tuple[str, ...]:
    """Warn where nobody sends a signal.

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


def _is_slurms(launch: Launch) -> bool:
    return launch.argv[0] == Text(text="srun")


def _check(job: Job, launch: Launch) -> None:
    lead, limit = job.value.signal_before_end or 0, job.value.resources.time
    most = min(_LONGEST_S, limit - 1) if limit else _LONGEST_S
    if lead > most:
        reason = f"the time limit is {limit}" if limit and limit <= _LONGEST_S else "Slurm's most"
        raise PlanError(
            f"{job.origin(_KEY)}: {_KEY} = {lead} is too long: at most {most} s ({reason})"
        )
    if launch.argv[0] == Text(text="ibrun"):
        raise PlanError(
            f"{job.origin(_KEY)}: which signals ibrun hands on depends on the MPI below it",
            "use --launcher srun, torchrun or mpirun, or leave signal_before_end out",
        )
