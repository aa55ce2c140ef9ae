"""Does the job fit the site? What cannot run is refused, what is unwise is a warning."""

from __future__ import annotations

from hpc_train.errors import PlanError, UnknownNameError
from hpc_train.model.partition import Partition
from hpc_train.model.plan import Topology
from hpc_train.model.units import Memory
from hpc_train.plans.resolve import Job, Site, partition_of


def check_limits(job: Job, site: Site, topology: Topology) -> tuple[str, ...]:
    """Compare a job with what the profile knows of its partition; return the warnings.

    Raises:
        UnknownNameError: the site lists partitions and the job's is not among them.
        PlanError: too many nodes, GPUs or cores, too much time or memory, no account.
    """
    _check_account(job, site)
    found = partition_of(job, site)
    if found is None:
        _check_partition_name(job, site)
        return _check_memory(job, site, None)
    partition = found[1]
    _check_sizes(job, site, topology, partition)
    return (
        *_check_cores(job, site, topology, partition),
        *_check_memory(job, site, partition.mem_per_node),
    )


def _check_account(job: Job, site: Site) -> None:
    if site.value.account.required and job.value.account is None:
        raise PlanError(
            f"{site.value.name} needs an account",
            "add `account: NAME` to the job, or --set account=NAME",
        )
    if job.value.resources.mem and site.value.mem_request == "forbidden":
        raise PlanError(
            f"{job.origin('resources.mem')}: {site.value.name} forbids a memory request "
            f"({site.origin('mem_request')})"
        )


def _check_partition_name(job: Job, site: Site) -> None:
    names = [partition.name for partition in site.value.partitions]
    if names and job.value.partition is not None:
        place = job.origin("partition")
        raise UnknownNameError(f"partition of {site.value.name}", job.value.partition, names, place)


def _check_sizes(job: Job, site: Site, topology: Topology, partition: Partition) -> None:
    asked = {
        "nodes": (topology.nodes, partition.max_nodes),
        "gpus_per_node": (topology.gpus_per_node, partition.gpus_per_node),
        "time": (job.value.resources.time, partition.max_time),
        "mem": (job.value.resources.mem, partition.mem_per_node),
    }
    for key, (wanted, limit) in asked.items():
        if wanted is not None and limit is not None and wanted > limit:
            raise PlanError(
                f"{job.origin(f'resources.{key}')}: {key} = {wanted}, but {site.value.name} "
                f"{partition.name} has at most {limit}"
            )


def _check_memory(job: Job, site: Site, whole: Memory | None) -> tuple[str, ...]:
    """Slurm gives a node for itself with all its cores, but with the memory that was asked for."""
    resources = job.value.resources
    if not resources.exclusive or resources.mem or site.value.scheduler != "slurm":
        return ()
    if site.value.mem_request == "forbidden":
        return ()
    advice = f" (a node of {site.value.name} has {whole})" if whole else ""
    return (
        f"{job.origin('resources.exclusive')}: exclusive without mem: the job may get no more "
        f"memory than the partition gives by default; name resources.mem{advice}",
    )


def _check_cores(job: Job, site: Site, topology: Topology, partition: Partition) -> tuple[str, ...]:
    cores = partition.cpus_per_node
    wanted = topology.tasks_per_node * topology.cpus_per_task
    if cores is None or wanted <= cores:
        return ()
    text = (
        f"{topology.tasks_per_node} tasks x {topology.cpus_per_task} cpus = {wanted}, but "
        f"{site.value.name} {partition.name} has {cores} cores"
    )
    if site.value.scheduler == "local":
        return (f"{text}: the ranks will share cores, so timings say little",)
    place = job.origin("resources.tasks_per_node")
    raise PlanError(f"{place}: {text}")
