"""Which cores and GPUs each rank is held to; a mask is for whole nodes, and says so when unused."""

from __future__ import annotations

import msgspec

from hpc_train.model.plan import LaunchRequest, Setting, Topology
from hpc_train.plans.context import Job, Site, partition_of

_LISTS = ("mask_cpu:", "map_cpu:", "mask_ldom:", "map_ldom:")


def resolve_binding(job: Job, site: Site, topology: Topology) -> dict[str, Setting]:
    """Return the site's binding as far as it fits the job, and why the rest is left out."""
    launchers = site.value.launchers
    settings: dict[str, Setting] = {}
    cpus = _cpu_word(job, site)
    if cpus:
        settings["cpu_bind"] = _cpus(cpus, job, site, topology)
    if launchers.gpu_bind:
        origin = site.origin("launchers.gpu_bind")
        settings["gpu_bind"] = _gpus(launchers.gpu_bind, origin, topology)
    return settings


def with_binding(
    request: LaunchRequest, settings: dict[str, Setting], *, nested: bool
) -> LaunchRequest:
    """Return the request of a job's step with what is left of the binding."""
    words = {key: settings[key].value for key in ("cpu_bind", "gpu_bind") if key in settings}
    binding = msgspec.structs.replace(
        request.binding, cpus=words.get("cpu_bind"), gpus=words.get("gpu_bind")
    )
    return msgspec.structs.replace(request, binding=binding, nested=nested)


def _cpu_word(job: Job, site: Site) -> tuple[str, str] | None:
    """Return the partition's word or the site's, with its place."""
    found = partition_of(job, site)
    if found and found[1].cpu_bind:
        return found[1].cpu_bind, site.origin(f"partitions.{found[0]}.cpu_bind")
    word = site.value.launchers.cpu_bind
    return (word, site.origin("launchers.cpu_bind")) if word else None


def _cpus(word: tuple[str, str], job: Job, site: Site, topology: Topology) -> Setting:
    """Refuse a list of masks that Slurm would refuse, or that would put ranks on others' cores."""
    value, origin = word
    if not value.startswith(_LISTS):
        return Setting(value=value, origin=origin)
    masks = value.partition(":")[2].count(",") + 1
    if masks != topology.tasks_per_node:
        why = f"left out: {masks} masks, {topology.tasks_per_node} ranks on a node"
        return Setting(value=None, origin=origin, why=why)
    if not _whole_node(job, site, topology):
        why = "left out: masks name cores of a whole node, which the job does not hold"
        return Setting(value=None, origin=origin, why=why)
    return Setting(value=value, origin=origin, why="the job holds whole nodes")


def _whole_node(job: Job, site: Site, topology: Topology) -> bool:
    """`--cpus-per-task` gives a step exactly its cores, even on a node that it has for itself."""
    found = partition_of(job, site)
    cores = found[1].cpus_per_node if found else None
    if cores is None:
        return bool(job.value.resources.exclusive)
    return topology.tasks_per_node * topology.cpus_per_task >= cores


def _gpus(word: str, origin: str, topology: Topology) -> Setting:
    """A rank with several GPUs must see them all."""
    if topology.gpus_per_node == topology.tasks_per_node:
        why = "" if word == "none" else "a rank may see its own GPU only, which then is number 0"
        return Setting(value=word, origin=origin, why=why)
    why = f"left out: {topology.gpus_per_node} GPUs for {topology.tasks_per_node} ranks"
    return Setting(value=None, origin=origin, why=why)
