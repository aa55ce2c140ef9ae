"""How much memory a job gets, and which of sbatch's three options asks for it."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.plan import Setting, Topology
from hpc_train.model.units import Memory
from hpc_train.plans.context import Job, Site, asked_at, from_job, partition_of

# As sbatch reads it: all memory of each node.
ALL = "0"


def memory_settings(job: Job, site: Site, topology: Topology) -> dict[str, Setting]:
    """Return `mem`, the memory of each node, if there is anything to ask for.

    Raises:
        PlanError: the site forbids to ask, or wants it and nobody says how much.
    """
    given = _given(job, site) or _share(job, site, topology)
    request = site.value.mem_request
    if given is None and request == "zero":
        origin = site.origin("mem_request")
        given = Setting(value=ALL, origin=origin, why="all memory of the nodes")
    if given is None and request == "required":
        raise PlanError(
            f"{asked_at(job, 'resources.mem')}{site.value.name} needs to know the memory of a "
            f"node ({site.near('mem_request')})",
            "add `mem: 100G` to the job's resources, or --set mem=100G",
        )
    return {} if given is None else {"mem": given}


def memory_warnings(job: Job, site: Site) -> tuple[str, ...]:
    """Slurm gives a node for itself with all its cores, but with the memory that was asked for."""
    resources, profile = job.value.resources, site.value
    if not resources.exclusive or resources.mem or profile.scheduler != "slurm":
        return ()
    if profile.mem_request in ("forbidden", "zero"):
        return ()
    found = partition_of(job, site)
    whole = found[1].mem_per_node if found else None
    advice = f" (a node of {profile.name} has {whole})" if whole else ""
    return (
        f"{job.origin('resources.exclusive')}: exclusive without mem: the job may get no more "
        f"memory than the partition gives by default; name resources.mem{advice}",
    )


def memory_options(
    request: str, mem: Memory | str | None, gpus_per_node: int, cpus_per_node: int
) -> dict[str, str]:
    """Ask in the site's words; a share is rounded down, so that it fits the node."""
    if mem is None:
        return {}
    shares = {"per-gpu": ("mem-per-gpu", gpus_per_node), "per-cpu": ("mem-per-cpu", cpus_per_node)}
    option, number = shares.get(request, ("mem", 0))
    if number and isinstance(mem, Memory):
        return {option: str(Memory(max(1, mem // number)))}
    return {"mem": str(mem)}


def _given(job: Job, site: Site) -> Setting | None:
    given = from_job(job, "resources.mem")
    if given and site.value.mem_request == "forbidden":
        raise PlanError(
            f"{given.origin}: {site.value.name} forbids a memory request "
            f"({site.origin('mem_request')})",
            "leave mem out: it comes with the nodes, GPUs or cores",
        )
    return given


def _share(job: Job, site: Site, topology: Topology) -> Setting | None:
    """The memory that goes with the GPUs, where the site wants a number."""
    found = partition_of(job, site)
    if found is None or site.value.mem_request not in ("required", "per-gpu"):
        return None
    each, gpus = found[1].mem_per_gpu, topology.gpus_per_node
    if each is None or not gpus:
        return None
    origin = site.origin(f"partitions.{found[0]}.mem_per_gpu")
    why = f"{each} with each of {gpus} GPU{'s' if gpus > 1 else ''}"
    return Setting(value=Memory(each * gpus), origin=origin, why=why)
