"""The end of a job before its work: the signal at which ranks save their state, and the requeue."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from hpc_train.base.errors import PlanError
from hpc_train.base.values import parts, within
from hpc_train.jobs.job import SourcedJob
from hpc_train.plans.context import Context, from_job, known, other_launchers, rule
from hpc_train.plans.directives import refused_option
from hpc_train.plans.plan import JobVar, Setting
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.profile import SourcedSite

CHECKPOINTS = "HPCTRAIN_CHECKPOINTS"
_CHECKPOINTS_KEY = f"env.{CHECKPOINTS}"
# Folders that usually are a disk or the memory of one node.
_NODE_LOCAL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # named to be refused
# Slurm stores the number of seconds in 16 bits.
_LONGEST_S = 65535
_KEY = "signal_before_end"
_LIFECYCLE = "lifecycle"
_AT_TERM, _FILE = "HPCTRAIN_STOP_AT_TERM", "HPCTRAIN_STOP_FILE"
# torch 2.9 renamed the variables of its flight recorder; without a version, an older one is meant.
_RENAMED = ">=2.9"
_OLDER = "2.4"
_RECORDED = 2000
_WHY = {
    "requeue_on": "exit codes of ranks that saved a checkpoint and have more to do",
    "max_restarts": "after this many restarts the job ends",
    "max_stalled": "starts in a row without a later checkpoint, after which the job ends",
    "max_run_time": "after this run time of all starts, the job is not queued again",
    "stop_by": "how ranks are asked to stop before the time limit",
}


def signal_settings(context: Context) -> dict[str, Setting]:
    """Return the job's lead time or, if it queues itself again, the one of the site."""
    job, site, launcher = context.job, context.site, context.launcher
    found = from_job(job, _KEY, "USR1 reaches every rank, up to a minute earlier than requested")
    if found:
        return {_KEY: found}
    lead = site.value.lifecycle.signal_lead if site.value.lifecycle else None
    limit = job.value.resources.time
    too_long = lead is not None and limit is not None and lead >= limit
    if lead is None or job.value.lifecycle is None or too_long:
        return {}
    if launcher.signal_obstacle and not _by_file(job):
        return {}
    why = "the site recommends it; ranks save before the time limit, and the job is queued again"
    return {_KEY: Setting(value=lead, origin=site.origin("lifecycle.signal_lead"), why=why)}


def signal_directives(context: Context) -> tuple[tuple[str, str], ...]:
    """Request a signal to the ranks, or to the script if the ranks are not tasks of Slurm.

    Raises:
        PlanError: the launcher or a shared allocation does not support it, or it would be sent
        before the start.
    """
    lead = signal_settings(context).get(_KEY)
    if lead is None or not context.batch.signals:
        return ()
    job, launcher = context.job, context.launcher
    wanted, limit = job.value.signal_before_end or 0, job.value.resources.time
    most = min(_LONGEST_S, limit - 1) if limit else _LONGEST_S
    if wanted > most:
        reason = f"the time limit is {limit}" if limit and limit <= _LONGEST_S else "Slurm's most"
        raise PlanError(
            f"{job.origin(_KEY)}: {_KEY} = {wanted} is too long: at most {most} s ({reason})"
        )
    if launcher.signal_obstacle and not _by_file(job):
        raise PlanError(
            f"{job.origin(_KEY)}: {launcher.signal_obstacle}",
            f"{other_launchers(context)}, or lifecycle: {{stop_by: file}}, or leave {_KEY} out",
        )
    who = "" if context.by_srun and not _by_file(job) else "B:"
    return (("signal", f"{who}USR1@{int(lead.value)}"),)


def passes_signal(job: SourcedJob, directives: tuple[tuple[str, str], ...]) -> bool:
    """Return whether the script receives the signal and must forward it."""
    return dict(directives).get("signal", "").startswith("B:") and not _by_file(job)


def _by_file(job: SourcedJob) -> bool:
    """Whether the script makes a file instead of sending the signal to the ranks."""
    return job.value.lifecycle is not None and job.value.lifecycle.stop_by == "file"


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
    instead = find_batch_system(site.value.scheduler).instead.get(_KEY)
    if instead is None:
        return ()
    name = site.value.name
    return (f"{job.origin(_KEY)}: {name} sends no signal before the time limit; {instead}",)


def requeue_settings(job: SourcedJob) -> dict[str, Setting]:
    """Return the keys of `lifecycle`, if the job has any."""
    if job.value.lifecycle is None:
        return {}
    found = {(key := f"{_LIFECYCLE}.{name}"): from_job(job, key, why) for name, why in _WHY.items()}
    return known(found)


def lifecycle_variables(context: Context) -> tuple[str, ...]:
    """Return the variables that the script exports for checkpoints, and that ranks must see."""
    lifecycle = context.job.value.lifecycle
    if lifecycle is None or context.plain or not context.batch.requeues:
        return ()
    return (CHECKPOINTS, _AT_TERM, *((_FILE,) if lifecycle.stop_by == "file" else ()))


def flight_recorder(context: Context) -> dict[str, Setting]:
    """Return the variables with which torch writes the last operations of NCCL after a timeout.

    Names: FlightRecorder.hpp and ProcessGroupNCCL.hpp of torch 2.13, and their names before 2.9.
    """
    job, site = context.job.value, context.site.value
    if job.lifecycle is None or not context.batch.requeues:
        return {}
    renamed = within(parts(job.torch or site.torch or _OLDER), _RENAMED)
    size = "TORCH_FR_BUFFER_SIZE" if renamed else "TORCH_NCCL_TRACE_BUFFER_SIZE"
    file = "TORCH_FR_DUMP_TEMP_FILE" if renamed else "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
    why = "after a timeout of NCCL, the logs of the run contain its last operations"
    return {
        "TORCH_NCCL_DUMP_ON_TIMEOUT": rule(1, why),
        size: rule(_RECORDED, why),
        file: rule(JobVar(name="nccl_trace"), why),
    }


def requeue_directives(context: Context) -> tuple[tuple[str, str], ...]:
    """Let Slurm itself queue the job again, after a preemption or the loss of a node."""
    job, site = context.job.value, context.site.value
    stated = "requeue" in job.directives or "requeue" in site.directives
    asked = job.lifecycle is not None and context.batch.requeues and not stated
    return (("requeue", ""),) if asked else ()


def check_requeue(context: Context, *, nested: bool) -> tuple[str, ...]:
    """Warn if nothing is queued again, or if the next start may not see the checkpoints.

    Raises:
        PlanError: another part of the job contradicts it.
    """
    job, folder = context.job, _check_checkpoint_folder(context)
    if job.value.lifecycle is None:
        return folder
    for why, hint in _obstacles(context, nested=nested):
        raise PlanError(f"{job.near(_LIFECYCLE)}: {why}", hint)
    if instead := context.batch.instead.get(_LIFECYCLE):
        name = context.site.value.name
        return (f"{job.near(_LIFECYCLE)}: {name} does not queue a job again; instead: {instead}",)
    if context.batch.signals and not signal_settings(context):
        return (
            f"{job.near(_LIFECYCLE)}: the time limit ends the job without a warning to its ranks, "
            f"and it is not queued again; {_KEY}: 5m sends one before",
            *folder,
        )
    return folder


def _check_checkpoint_folder(context: Context) -> tuple[str, ...]:
    """Warn of a folder that only one node has, where the next start may be on another one.

    Raises:
        PlanError: several nodes need one folder; a variable in its name, which nothing replaces; no
        name.
    """
    job, nodes = context.job, context.job.value.resources.nodes
    named = str(job.value.env.get(CHECKPOINTS, ""))
    place = job.near(_CHECKPOINTS_KEY)
    if CHECKPOINTS in job.value.env and not named:
        raise PlanError(f"{place}: {_CHECKPOINTS_KEY} is empty", "name a folder, or leave it out")
    if named.startswith("~") or "$" in named:
        raise PlanError(
            f"{place}: {_CHECKPOINTS_KEY} = {named}: values of env are passed unchanged, so this "
            "is a folder of that name",
            "write the whole path, such as /scratch/me/ckpt",
        )
    own = [one.path for one in context.site.value.storage.values() if one.node_local and one.path]
    # As far as the path is known: /mnt/bb/$USER.
    folders = [*_NODE_LOCAL, *(p.partition("/$")[0] for p in own if p.startswith("/"))]
    local = next((one for one in folders if PurePosixPath(named).is_relative_to(one)), None)
    if local is None or not context.batch.requeues:
        return ()
    if nodes > 1:
        raise PlanError(
            f"{place}: {named} is on each node's own disk ({local}), and a checkpoint of {nodes} "
            "nodes is one folder",
            "name a folder that all nodes share, or leave it out: the run folder is one",
        )
    return (
        f"{place}: {named} is on the node's own disk ({local}): a start on another node, or after "
        "the disk was emptied, begins at step 0",
    )


def _obstacles(context: Context, *, nested: bool) -> Iterator[tuple[str, str]]:
    job = context.job
    if nested:
        yield (
            "a run with placement nested has no job of its own that could be queued again",
            "leave placement out: independent is the default",
        )
    if context.plain:
        yield (
            "a plain script does not track its restarts",
            "render it without --plain, or leave lifecycle out",
        )
    if spelled := refused_option("requeue", context.site):
        site = context.site
        yield (
            f"{site.value.name} does not allow that a job is queued again: "
            f"{site.value.forbidden[spelled]} ({site.near(f'forbidden.{spelled}')})",
            "leave lifecycle out and submit a chain of jobs: hpctrain help restart",
        )
    directives = {**context.site.value.directives, **job.value.directives}
    for option, never in (("no-requeue", True), ("requeue", False)):
        if directives.get(option) is never:
            yield (
                f"with directives.{option}: {str(never).lower()} Slurm never queues the job again",
                f"directives: {{{option}: {str(not never).lower()}}}, or leave lifecycle out",
            )
    if job.value.elastic and job.value.elastic.max_restarts:
        yield (
            "torchrun would start ranks again that saved a checkpoint and ended "
            f"({job.near('elastic.max_restarts')})",
            "give one of the two",
        )
