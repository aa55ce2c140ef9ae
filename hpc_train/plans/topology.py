"""How many nodes, ranks, GPUs and cores."""

from __future__ import annotations

from hpc_train.model.plan import Setting, Topology
from hpc_train.plans.resolve import Job, Site, default, from_job, from_site, partition_of, rule


def resolve_topology(job: Job, site: Site) -> tuple[Topology, dict[str, Setting]]:
    """Resolve the counts of a job.

    Ranks default to one per GPU, else one; on the local site a rank gets a GPU as long as there
    are some. Cores default to an equal share of the node's, else one: never unset, because
    torchrun gives each rank a single thread when OMP_NUM_THREADS is not there.
    """
    settings = {"nodes": from_job(job, "resources.nodes") or default(1, "one node")}
    settings["gpus_per_node"] = _gpus(job, site)
    settings["tasks_per_node"] = _tasks(job, settings["gpus_per_node"].value)
    settings["cpus_per_task"] = _cpus(job, site, settings["tasks_per_node"].value)
    counts = {key: setting.value for key, setting in settings.items()}
    return Topology(**counts), settings


def _gpus(job: Job, site: Site) -> Setting:
    given = from_job(job, "resources.gpus_per_node")
    if given or site.value.scheduler != "local":
        return given or default(0, "none asked for")
    found = partition_of(job, site)
    here = (found[1].gpus_per_node if found else 0) or 0
    tasks = job.value.resources.tasks_per_node or 1
    return rule(min(tasks, here), f"one for each rank while there are some; here: {here}")


def _tasks(job: Job, gpus: int) -> Setting:
    given = from_job(job, "resources.tasks_per_node")
    if given:
        return given
    return rule(gpus, "one rank per GPU") if gpus else default(1, "no GPUs: one rank")


def _cpus(job: Job, site: Site, tasks: int) -> Setting:
    given = from_job(job, "resources.cpus_per_task")
    if given:
        return given
    found = partition_of(job, site)
    if found and found[1].cpus_per_node:
        cores = from_site(site, f"partitions.{found[0]}.cpus_per_node", found[1].cpus_per_node)
        share = max(1, found[1].cpus_per_node // tasks)
        origin = cores.origin if cores else "site"
        why = f"{found[1].cpus_per_node} cores for {tasks} rank{'s' if tasks > 1 else ''}"
        return Setting(value=share, origin=origin, why=why)
    return default(1, "the site's cores per node are not known")
