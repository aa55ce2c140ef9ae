"""The numbers of nodes, ranks, GPUs and cores, whether they match, and where ranks meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpc_train.base.errors import PlanError
from hpc_train.jobs.job import Elastic, SourcedJob, Topology
from hpc_train.plans.context import (
    Context,
    default,
    from_job,
    other_launchers,
    rule,
    takes_whole_nodes,
)
from hpc_train.plans.launchers.base import Launcher
from hpc_train.plans.plan import Setting
from hpc_train.sites.partition import Partition
from hpc_train.sites.profile import SourcedSite


def resolve_topology(context: Context) -> tuple[Topology, dict[str, Setting]]:
    """Resolve the counts of a job.

    Ranks default to one per GPU, else one; on the local site each rank gets a GPU if enough are
    available. Cores default to the share of the rank's GPUs, else to an equal share of the node. If
    the site does not state them, a rank gets its share of what Slurm gives with whole nodes, which
    only the job knows, else one. They are always set, because torchrun gives each rank one thread
    if OMP_NUM_THREADS is not set.
    """
    settings = {"nodes": from_job(context.job, "resources.nodes") or default(1, "one node")}
    settings["gpus_per_node"] = _gpus(context)
    gpus = settings["gpus_per_node"].value
    settings["tasks_per_node"] = from_job(context.job, "resources.tasks_per_node") or (
        rule(gpus, "one rank per GPU") if gpus else default(1, "no GPUs: one rank")
    )
    settings["cpus_per_task"] = _cpus(context, settings["tasks_per_node"].value, gpus)
    counts = {key: setting.value for key, setting in settings.items()}
    return Topology(**counts), settings


def gpu_warnings(topology: Topology, launcher: Launcher, gpu_request: str = "") -> tuple[str, ...]:
    """Return warnings: GPUs that a rank does not see, or shares, or does not use; several for one.

    Slurm binds the GPUs of `--gpus-per-task` to their task (man srun).
    """
    gpus, tasks = topology.gpus_per_node, topology.tasks_per_node
    if gpus and tasks > 1 and gpu_request == "gpus-per-task" and launcher.ranks_are_tasks:
        return (
            "each rank sees only its own GPU, as device 0 (--gpus-per-task): a program that takes "
            "device LOCAL_RANK fails; take LOCAL_RANK % torch.cuda.device_count()",
        )
    if not gpus or gpus == tasks:
        return ()
    if tasks > gpus:
        return (
            f"{tasks} ranks for {gpus} GPU{'s' if gpus > 1 else ''} of a node: NCCL refuses two "
            "ranks on one GPU",
        )
    if gpus % tasks:
        return (f"{gpus} GPUs for {tasks} ranks of a node: {gpus % tasks} cannot be shared out",)
    if not launcher.data_parallel:
        return ()
    advice = f"DistributedDataParallel with a rank for each GPU (tasks_per_node: {gpus}) is faster"
    who = "the rank sees" if tasks == 1 else f"each of {tasks} ranks sees"
    return (
        f"{who} all {gpus} GPUs of its node (DataParallel, or a model over several GPUs); "
        f"if it is DataParallel, {advice}",
    )


def core_warnings(context: Context, settings: Mapping[str, Setting]) -> Iterator[str]:
    """Warn of a GPU that gets one core because nobody stated how many there are."""
    cores = settings["cpus_per_task"]
    if settings["gpus_per_node"].value and cores.value == 1 and cores.origin == "default":
        yield (
            f"1 core for each rank, which may be too few for a GPU: {context.site.value.name} does "
            "not state the cores of its nodes; --cpus-per-task 8, or --exclusive for whole nodes"
        )


def _gpus(context: Context) -> Setting:
    given = from_job(context.job, "resources.gpus_per_node")
    if given:
        return given
    here, site = context.partition.gpus_per_node or 0, context.site.value
    if context.batch.this_machine:
        tasks = context.job.value.resources.tasks_per_node or 1
        return rule(min(tasks, here), f"one for each rank while there are some; here: {here}")
    # If no option requests GPUs, a job gets all GPUs of its nodes.
    if (site.gpu_request == "none" or context.batch.whole_nodes) and here:
        origin = context.origin("gpus_per_node")
        return Setting(value=here, origin=origin, why="they come with the nodes")
    return default(0, "none asked for")


def _cpus(context: Context, tasks: int, gpus: int) -> Setting:
    given = from_job(context.job, "resources.cpus_per_task")
    if given:
        return given
    key, cores, what = _cores(context.partition, gpus)
    if not cores:
        return _counted_in_job(context) or default(1, "the site's cores per node are not known")
    why = f"{cores} cores{what} for {tasks} rank{'s' if tasks > 1 else ''}"
    return Setting(value=max(1, cores // tasks), origin=context.origin(key), why=why)


def _counted_in_job(context: Context) -> Setting | None:
    """Return None as the number of cores if they come with the nodes, or by the site's own rule."""
    site, asked = context.site, from_job(context.job, "resources.exclusive")
    if not context.batch.cores:
        return None
    if takes_whole_nodes(context):
        why = "all cores of whole nodes, divided by the ranks of a node in the job"
        origin = asked.origin if asked else context.near("exclusive")
        return Setting(value=None, origin=origin, why=why)
    if site.value.cpu_request == "forbidden":
        why = "the cores that the site gives, divided by the ranks of a node in the job"
        return Setting(value=None, origin=site.near("cpu_request"), why=why)
    return None


def _cores(partition: Partition, gpus: int) -> tuple[str, int, str]:
    """Return the profile's key for the cores of a job on a node, their number, and the basis.

    On a shared node, a job with some of the GPUs gets only their share of the cores.
    """
    of_gpus = f" with {gpus} GPU{'s' if gpus > 1 else ''}"
    if gpus and partition.cpus_per_gpu:
        return "cpus_per_gpu", partition.cpus_per_gpu * gpus, of_gpus
    cores, there = partition.cpus_per_node or 0, partition.gpus_per_node
    if partition.shared and gpus and there and gpus < there:
        return "cpus_per_node", cores * gpus // there, of_gpus
    return "cpus_per_node", cores, ""


def rendezvous_settings(site: SourcedSite) -> dict[str, Setting]:
    """Return the host and the port, with their reasons."""
    meeting = site.value.rendezvous
    free = f"first free one of {meeting.ports}, tried on rank 0's host when the job starts"
    host = Setting(value=meeting.host + meeting.suffix, origin=site.origin("rendezvous.host"))
    port = Setting(value=meeting.port, origin=site.origin("rendezvous.port"), why=free)
    return {"rendezvous.host": host, "rendezvous.port": port}


def resolve_elastic(job: SourcedJob) -> Elastic | None:
    """Return the complete bounds; None for a job that is not elastic.

    Raises:
        PlanError: the bounds contradict the job's number of nodes.
    """
    wanted = job.value.elastic
    if wanted is None:
        return None
    nodes = job.value.resources.nodes
    most = wanted.max_nodes or nodes
    fewest = wanted.min_nodes or most
    if not fewest <= most <= nodes:
        raise PlanError(
            f"{job.near('elastic')}: elastic wants min_nodes <= max_nodes <= the job's nodes, "
            f"not {fewest}, {most}, {nodes}"
        )
    return Elastic(min_nodes=fewest, max_nodes=most, max_restarts=wanted.max_restarts)


def elastic_settings(job: SourcedJob, elastic: Elastic | None) -> dict[str, Setting]:
    """Return the bounds as `explain` shows them."""
    if elastic is None:
        return {}
    return {
        f"elastic.{key}": Setting(value=getattr(elastic, key), origin=job.near(f"elastic.{key}"))
        for key in ("min_nodes", "max_nodes", "max_restarts")
    }


def check_elastic(context: Context) -> None:
    """Refuse an elastic job under a launcher whose ranks all end with the first one.

    Raises:
        PlanError: with the launchers of the site that support it.
    """
    job, launcher = context.job, context.launcher
    if not job.value.elastic:
        return
    instead = context.batch.instead.get("elastic")
    # Before the launcher: no other one helps.
    if job.value.resources.nodes > 1 and instead:
        raise PlanError(
            f"{job.near('elastic')}: the job cannot be elastic on several nodes of "
            f"{context.site.value.name}: {instead}",
            "leave elastic out, or nodes: 1",
        )
    if not launcher.elastic:
        raise PlanError(
            f"{job.near('elastic')}: the job cannot be elastic: all ranks of the launcher "
            f"{launcher.name} end with the first one",
            f"{other_launchers(context)}, or leave elastic out",
        )


def elastic_directives(elastic: Elastic | None, nodes: int) -> tuple[tuple[str, str], ...]:
    """Keep the job after the loss of a node, if it can continue with fewer nodes."""
    spare = elastic is not None and (elastic.min_nodes or nodes) < nodes
    return (("no-kill", ""),) if spare else ()
