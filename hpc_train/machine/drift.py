"""Comparison of a profile with the live Slurm or PBS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hpc_train.base.errors import SiteProfileError
from hpc_train.base.units import Memory
from hpc_train.base.value import Value
from hpc_train.pbs.live_pbs import LivePbs, PbsQueue, queue_limits, read_pbs
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.partition import ANY, Partition
from hpc_train.sites.profile import SourcedSite
from hpc_train.slurm.live_cluster import Cluster, LivePartition, read_cluster

_LIMITS = ("max_time", "min_time", "default_time", "min_nodes", "max_gpus")


def compare_pbs(site: SourcedSite, pbs: LivePbs) -> Drift:
    """Return the differences; values that only one of the two has are not compared."""
    queues = {queue.name: queue for queue in pbs.queues}
    compared = [
        difference
        for index, partition in enumerate(site.value.partitions)
        if partition.name != ANY
        for difference in _of_queue(site, f"partitions.{index}", partition, queues, pbs)
    ]
    differences = tuple(one for one in compared if one is not None)
    return Drift(compared=len(compared), differences=differences)


def _of_queue(
    site: SourcedSite, key: str, said: Partition, queues: dict[str, PbsQueue], pbs: LivePbs
) -> Differences:
    queue = queues.get(said.name)
    yield pair(site, f"{key}.name", said.name, "not there", same=queue is not None)
    if queue is None:
        return
    if not queue.open:
        yield pair(site, f"{key}.name", said.name, "closed", same=False)
    found = queue_limits(pbs, queue)
    # A job above the number of hosts never starts: a profile may state either of the two.
    if said.max_nodes is not None and found.max_nodes is not None:
        same = said.max_nodes in (found.max_nodes, found.stated_nodes)
        yield pair(site, f"{key}.max_nodes", said.max_nodes, found.max_nodes, same=same)
    for name in _LIMITS:
        mine, theirs = getattr(said, name), getattr(found, name)
        if mine is not None and theirs is not None:
            yield pair(site, f"{key}.{name}", mine, theirs, same=mine == theirs)
    if said.default and pbs.default_queue:
        same = said.name == pbs.default_queue
        yield pair(site, f"{key}.default", said.name, pbs.default_queue, same=same)


# Names of values, in Slurm and in the profile.
_SAME = ("max_time", "default_time", "min_nodes", "nodes")
_NOT_SLURMS = "not there"


class Difference(Value, frozen=True, kw_only=True):
    """One value that differs between profile and cluster; both as text."""

    key: str
    place: str
    profile: str
    cluster: str


class Drift(Value, frozen=True, kw_only=True):
    """Number of compared values, and the differences."""

    compared: int
    differences: tuple[Difference, ...]


# None if both are equal.
Differences = Iterator[Difference | None]


def compare(site: SourcedSite, cluster: Cluster) -> Drift:
    """Return the differences; values that only one of the two has are not compared."""
    compared = [
        difference
        for make in (_identity, _partitions, _qos, _launchers, _limits)
        for difference in make(site, cluster)
    ]
    differences = tuple(one for one in compared if one is not None)
    return Drift(compared=len(compared), differences=differences)


def _identity(site: SourcedSite, cluster: Cluster) -> Differences:
    said = site.value.slurm
    if said is not None and cluster.version:
        same = f"{cluster.version}.".startswith(f"{said}.")
        yield pair(site, "slurm", said, cluster.version, same=same)
    known = site.value.detect.clusters if site.value.detect else ()
    if known:
        same = cluster.name in known
        yield pair(site, "detect.clusters", ", ".join(known), cluster.name, same=same)


def _partitions(site: SourcedSite, cluster: Cluster) -> Differences:
    live = {one.name: one for one in cluster.partitions}
    said = [name for one in site.value.partitions if (name := _slurms_name(one))]
    for index, partition in enumerate(site.value.partitions):
        name = _slurms_name(partition)
        if name is None:
            continue
        key = f"partitions.{index}"
        yield pair(site, f"{key}.name", name, _NOT_SLURMS, same=name in live)
        if name not in live or said.count(name) != 1:
            continue
        yield from _of_partition(site, key, partition, live[name])
        yield from _of_nodes(site, key, partition, cluster)


def _slurms_name(partition: Partition) -> str | None:
    """Return the name in Slurm; None if a job names no partition, or any."""
    if partition.select is not None:
        return partition.select.partition
    return partition.name if partition.name != "*" else None


def _of_partition(
    site: SourcedSite, key: str, partition: Partition, live: LivePartition
) -> Differences:
    for name in _SAME:
        said, found = getattr(partition, name), getattr(live, name)
        if said is not None:
            yield pair(site, f"{key}.{name}", said, found, same=said == found)
    said, found = partition.max_nodes, live.largest
    if said is not None and found is not None:
        # Without a limit in the partition, the site may have one in a QOS.
        same = said == found if live.max_nodes else said <= found
        yield pair(site, f"{key}.max_nodes", said, found, same=same)
    if partition.default and partition.select is None:
        yield pair(site, f"{key}.default", "true", "false", same=live.default)


def _of_nodes(site: SourcedSite, key: str, partition: Partition, cluster: Cluster) -> Differences:
    name = _slurms_name(partition)
    nodes = [node for node in cluster.nodes if name in node.partitions]
    facts: dict[str, set[Any]] = {
        "cpus_per_node": {node.cpus for node in nodes},
        "gpu_type": {kind for node in nodes for kind in node.gpu_kinds},
        "arch": {node.arch for node in nodes},
    }
    if site.value.gpu_request != "none":
        facts["gpus_per_node"] = {node.gpus for node in nodes}
    for fact, found in facts.items():
        said = getattr(partition, fact)
        if said is not None and found:
            words = " or ".join(map(str, sorted(found)))
            yield pair(site, f"{key}.{fact}", said, words, same=said in found)
    most = max((node.memory for node in nodes if node.memory is not None), default=None)
    if partition.mem_per_node is not None and most is not None:
        same = partition.mem_per_node <= most
        yield pair(site, f"{key}.mem_per_node", partition.mem_per_node, Memory(most), same=same)
    wanted = partition.select.constraint if partition.select else None
    if nodes and wanted and wanted.isidentifier():
        same = any(wanted in node.features for node in nodes)
        yield pair(site, f"{key}.select.constraint", wanted, _NOT_SLURMS, same=same)


def _qos(site: SourcedSite, cluster: Cluster) -> Differences:
    live = {one.name: one for one in cluster.qos}
    for index, qos in enumerate(site.value.qos if live else ()):
        key = f"qos.{index}"
        if qos.name == "*":
            continue
        yield pair(site, f"{key}.name", qos.name, _NOT_SLURMS, same=qos.name in live)
        if qos.name not in live:
            continue
        for name in ("max_time", "max_nodes", "max_gpus", "max_jobs"):
            said, found = getattr(qos, name), getattr(live[qos.name], name)
            if said is not None:
                yield pair(site, f"{key}.{name}", said, found, same=said == found)


def _launchers(site: SourcedSite, cluster: Cluster) -> Differences:
    containers = site.value.containers
    said = {
        "launchers.mpi": site.value.launchers.mpi,
        "containers.mpi": containers.mpi if containers else None,
    }
    known = (*cluster.mpi.plugins, "none")
    for key, plugin in said.items():
        if plugin is None or not cluster.mpi.plugins:
            continue
        broken = plugin in cluster.mpi.broken
        found = "srun cannot load it" if broken else ", ".join(cluster.mpi.plugins)
        yield pair(site, key, plugin, found, same=plugin in known and not broken)


def _limits(site: SourcedSite, cluster: Cluster) -> Differences:
    said, found = site.value.limits.max_array_size, cluster.limits.max_array_size
    if said is not None and found is not None:
        yield pair(site, "limits.max_array_size", said, found, same=said <= found)
    requeue = site.value.lifecycle.requeue if site.value.lifecycle else None
    live = cluster.limits.requeue
    if requeue is not None and live is not None:
        yield pair(site, "lifecycle.requeue", requeue, live, same=requeue == live)


def pair(
    site: SourcedSite, key: str, said: object, found: object, *, same: bool
) -> Difference | None:
    if same:
        return None
    return Difference(
        key=key,
        place=site.near(key),
        profile=str(said),
        cluster="no limit" if found is None else str(found),
    )


class LiveCheck(NamedTuple):
    """The name of the profile, the scheduler's answers, and the comparison."""

    name: str
    cluster: Cluster | LivePbs
    drift: Drift


def check_live(site: str) -> LiveCheck:
    """Compare a profile with the output of its scheduler's commands.

    Raises:
        HpcTrainError: no such profile, or the scheduler has no commands, or does not answer.
    """
    profile = load_site(site)
    batch = find_batch_system(profile.value.scheduler)
    if not batch.prefix:
        raise SiteProfileError(
            f"{profile.near('scheduler')}: --live asks the commands of Slurm or PBS, which "
            f"{batch.title} does not have",
            f"hpctrain site check {site} plans and checks sample jobs; HPCTRAIN_SITE={site} "
            "hpctrain doctor examines this machine and, for SageMaker, the account",
        )
    if batch.letters:
        pbs = read_pbs()
        return LiveCheck(profile.value.name, pbs, compare_pbs(profile, pbs))
    cluster = read_cluster()
    return LiveCheck(profile.value.name, cluster, compare(profile, cluster))
