"""How many nodes, ranks, GPUs and cores."""

from __future__ import annotations

from hpc_train.model.partition import Partition
from hpc_train.model.plan import Setting, Topology
from hpc_train.plans.context import Job, Site, default, from_job, partition_of, rule


def resolve_topology(job: Job, site: Site) -> tuple[Topology, dict[str, Setting]]:
    """Resolve the counts of a job.

    Ranks default to one per GPU, else one; on the local site a rank gets a GPU as long as there
    are some. Cores default to those that go with the rank's GPUs, else to an equal share of the
    node's, else one: never unset, because torchrun gives each rank a single thread when
    OMP_NUM_THREADS is not there.
    """
    settings = {"nodes": from_job(job, "resources.nodes") or default(1, "one node")}
    settings["gpus_per_node"] = _gpus(job, site)
    settings["tasks_per_node"] = _tasks(job, settings["gpus_per_node"].value)
    tasks, gpus = settings["tasks_per_node"].value, settings["gpus_per_node"].value
    settings["cpus_per_task"] = _cpus(job, site, tasks, gpus)
    counts = {key: setting.value for key, setting in settings.items()}
    return Topology(**counts), settings


def _gpus(job: Job, site: Site) -> Setting:
    given = from_job(job, "resources.gpus_per_node")
    if given:
        return given
    found = partition_of(job, site)
    if site.value.scheduler != "local":
        return _with_the_queue(site, found) or default(0, "none asked for")
    here = (found[1].gpus_per_node if found else 0) or 0
    tasks = job.value.resources.tasks_per_node or 1
    return rule(min(tasks, here), f"one for each rank while there are some; here: {here}")


def _with_the_queue(site: Site, found: tuple[int, Partition] | None) -> Setting | None:
    """Where no option asks for GPUs, the nodes come with all of theirs."""
    if site.value.gpu_request != "none" or found is None or not found[1].gpus_per_node:
        return None
    origin = site.origin(f"partitions.{found[0]}.gpus_per_node")
    return Setting(value=found[1].gpus_per_node, origin=origin, why="they come with the nodes")


def _tasks(job: Job, gpus: int) -> Setting:
    given = from_job(job, "resources.tasks_per_node")
    if given:
        return given
    return rule(gpus, "one rank per GPU") if gpus else default(1, "no GPUs: one rank")


def _cpus(job: Job, site: Site, tasks: int, gpus: int) -> Setting:
    given = from_job(job, "resources.cpus_per_task")
    if given:
        return given
    found = partition_of(job, site)
    key, cores, what = _cores(found[1], gpus) if found else ("", 0, "")
    if found is None or not cores:
        return default(1, "the site's cores per node are not known")
    origin = site.origin(f"partitions.{found[0]}.{key}")
    why = f"{cores} cores{what} for {tasks} rank{'s' if tasks > 1 else ''}"
    return Setting(value=max(1, cores // tasks), origin=origin, why=why)


def _cores(partition: Partition, gpus: int) -> tuple[str, int, str]:
    """Return the cores that a job gets on a node, and the key that says so.

    On a node that is shared, whoever takes some of the GPUs leaves their part of the cores.
    """
    of_gpus = f" with {gpus} GPU{'s' if gpus > 1 else ''}"
    if gpus and partition.cpus_per_gpu:
        return "cpus_per_gpu", partition.cpus_per_gpu * gpus, of_gpus
    cores, there = partition.cpus_per_node or 0, partition.gpus_per_node
    if partition.shared and gpus and there and gpus < there:
        return "cpus_per_node", cores * gpus // there, of_gpus
    return "cpus_per_node", cores, ""
