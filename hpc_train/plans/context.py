"""The partition, qos and launcher of a job, resolved once; precedence: job > site > default.

An option of the command line is part of the job, and takes precedence over its file.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hpc_train.base.errors import PlanError, UnknownNameError
from hpc_train.base.registry import names
from hpc_train.base.values import Sourced, Value
from hpc_train.jobs.job import SourcedJob, Topology
from hpc_train.plans.launchers.base import Launcher, find_launcher
from hpc_train.plans.plan import Setting
from hpc_train.plans.queue_limits import JobQueue, queue_named
from hpc_train.sites.batch_system import BatchSystem, find_batch_system
from hpc_train.sites.partition import ANY, Partition
from hpc_train.sites.profile import SourcedSite
from hpc_train.sites.search import files_named, label_of


class Context(Value, frozen=True, kw_only=True):
    """A job on a site, with the profile's entries for its partition, qos and launcher.

    If the profile does not list the partition, all values of `partition` are absent.
    `chosen` is the origin of the launcher. With `plain`, the script does not track the run.
    """

    job: SourcedJob
    site: SourcedSite
    batch: BatchSystem
    launcher: Launcher
    chosen: Setting
    queue: JobQueue
    partition: Partition
    plain: bool = False

    @property
    def by_srun(self) -> bool:
        """Whether Slurm's srun starts the ranks, or the agents that start them."""
        return self.launcher.through_srun and self.batch.steps

    def key(self, name: str) -> str:
        """Return the key of a value of the partition: `partitions.2.gpu_type`."""
        index = self.queue.partition[0] if self.queue.partition else ""
        return f"partitions.{index}.{name}"

    def origin(self, name: str) -> str:
        """Return the origin of a value of the partition."""
        return self.site.origin(self.key(name))

    def near(self, name: str) -> str:
        """Return the place to correct in the partition's entry."""
        return self.site.near(self.key(name))


def resolve_context(job: SourcedJob, site: SourcedSite, *, plain: bool = False) -> Context:
    """Look up the launcher, the partition and the quality of service of a job.

    Raises:
        UnknownNameError: there is no such launcher.
        PlanError: the site forbids the launcher or does not have it.
    """
    chosen = _choose_launcher(job, site)
    queue, partition = _queue(job, site)
    launcher, batch = find_launcher(chosen.value), find_batch_system(site.value.scheduler)
    named = dict(batch.starters).get(site.value.pbs.starter) if site.value.pbs else None
    return Context(
        job=job,
        site=site,
        batch=msgspec.structs.replace(batch, starter=named) if named else batch,
        launcher=launcher,
        chosen=chosen,
        queue=queue,
        partition=partition,
        plain=plain,
    )


def with_key(context: Context, key: str, name: str, origin: str = "") -> Context:
    """Return the context as if the job had named a partition or a quality of service."""
    spec = msgspec.structs.replace(context.job.value, **{key: name})
    job = Sourced(value=spec, origins={**context.job.origins, key: origin})
    queue, partition = _queue(job, context.site)
    return msgspec.structs.replace(context, job=job, queue=queue, partition=partition)


def with_trainer(context: Context, topology: Topology) -> Context:
    """Add the options of the reference trainer to the command of a job that has any.

    Raises:
        PlanError: the command runs another program, or the strategy cannot run on these ranks.
    """
    if context.job.value.trainer is None:
        return context
    # Imported only for such a job: each module costs a login node several file accesses.
    from hpc_train.plans.trainer_options import with_trainer_options

    job = with_trainer_options(context.job, topology)
    return msgspec.structs.replace(context, job=job)


def takes_whole_nodes(context: Context) -> bool:
    """Return whether the job shares its nodes with no other job; its own word takes precedence."""
    asked = context.job.value.resources.exclusive
    if context.batch.whole_nodes:
        return True
    return context.partition.exclusive if asked is None else asked


def from_job(job: SourcedJob, key: str, why: str = "") -> Setting | None:
    """Return the job's value (or an option's) of a dotted key, if any."""
    value: Any = job.value
    for part in key.split("."):
        value = getattr(value, part)
    return None if value is None else Setting(value=value, origin=job.origin(key), why=why)


def from_site(site: SourcedSite, key: str, value: Any, why: str = "") -> Setting | None:
    """Return the site's value, if any; `key` is its key in the profile."""
    return None if value is None else Setting(value=value, origin=site.origin(key), why=why)


def rule(value: Any, why: str) -> Setting:
    """Return a value that is derived from others."""
    return Setting(value=value, origin="rule", why=why)


def default(value: Any, why: str) -> Setting:
    """Return a default, for a value that neither job nor site sets."""
    return Setting(value=value, origin="default", why=why)


def known(settings: Mapping[str, Setting | None]) -> dict[str, Setting]:
    """Return the settings that there are."""
    return {key: setting for key, setting in settings.items() if setting is not None}


def asked_at(job: SourcedJob, key: str) -> str:
    """Return the beginning of a message about a value of the job."""
    place = job.near(key)
    return f"{place}: " if place else ""


def show(site: SourcedSite) -> str:
    """Return the command that prints a profile: by its file, if the name leads to another one."""
    name, file = site.value.name, site.near("")
    first = next(files_named(name), None)
    named = not file or (first is not None and label_of(first) == file)
    return shlex.join(("hpctrain", "site", "show", name if named else file))


def _queue(job: SourcedJob, site: SourcedSite) -> tuple[JobQueue, Partition]:
    spec = job.value
    queue = queue_named(site.value, spec.partition, spec.qos)
    return queue, queue.partition[1] if queue.partition else Partition(name=ANY)


def _choose_launcher(job: SourcedJob, site: SourcedSite) -> Setting:
    launchers = site.value.launchers
    chosen = from_job(job, "launcher") or Setting(
        value=launchers.default, origin=site.origin("launchers.default"), why="the site's default"
    )
    name = chosen.value
    if name in launchers.forbidden:
        raise PlanError(
            f"{chosen.origin}: {site.value.name} forbids {name}: {launchers.forbidden[name]}",
            f"allowed: {', '.join(launchers.allowed)}",
        )
    if name in launchers.allowed:
        return chosen
    if name not in names("launchers"):
        raise UnknownNameError("launcher", name, launchers.allowed, chosen.origin, show(site))
    why = find_batch_system(site.value.scheduler).refused.get(name)
    reason = f": {why}" if why else ""
    raise PlanError(
        f"{chosen.origin}: {site.value.name} does not offer {name}{reason}; "
        f"allowed: {', '.join(launchers.allowed)}"
    )


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
