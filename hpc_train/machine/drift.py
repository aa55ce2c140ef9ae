"""Comparison of a profile with the live Slurm or PBS."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hpc_train.base.errors import SiteProfileError
from hpc_train.base.values import Memory, Value
from hpc_train.pbs.live_pbs import LivePbs, PbsQueue, queue_limits, read_pbs
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.partition import ANY, Partition
from hpc_train.sites.profile import SiteProfile, SourcedSite
from hpc_train.slurm.live_cluster import Cluster, LivePartition, read_cluster

_NOT_THERE = "not there"


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


# The key, its value in the profile and in the cluster, and whether they agree.
Pairs = Iterator[tuple[str, object, object, bool]]


def _drift(site: SourcedSite, pairs: Pairs) -> Drift:
    compared = list(pairs)
    differences = tuple(
        Difference(
            key=key,
            place=site.near(key),
            profile=str(said),
            cluster="no limit" if found is None else str(found),
        )
        for key, said, found, same in compared
        if not same
    )
    return Drift(compared=len(compared), differences=differences)


def _equal(key: str, said: object, found: object, names: Sequence[str]) -> Pairs:
    """Compare the values that the profile states."""
    for name in names:
        mine, theirs = getattr(said, name), getattr(found, name)
        if mine is not None:
            yield f"{key}.{name}", mine, theirs, mine == theirs


def compare_pbs(site: SourcedSite, pbs: LivePbs) -> Drift:
    """Return the differences; values that only one of the two has are not compared."""
    queues = {queue.name: queue for queue in pbs.queues}
    return _drift(
        site,
        (
            pair
            for index, said in enumerate(site.value.partitions)
            if said.name != ANY
            for pair in _of_queue(f"partitions.{index}", said, queues.get(said.name), pbs)
        ),
    )


def _of_queue(key: str, said: Partition, queue: PbsQueue | None, pbs: LivePbs) -> Pairs:
    yield f"{key}.name", said.name, _NOT_THERE, queue is not None
    if queue is None:
        return
    if not queue.open:
        yield f"{key}.name", said.name, "closed", False
    found = queue_limits(pbs, queue)
    # A job above the number of hosts never starts: a profile may state either of the two.
    if said.max_nodes is not None and found.max_nodes is not None:
        same = said.max_nodes in (found.max_nodes, found.stated_nodes)
        yield f"{key}.max_nodes", said.max_nodes, found.max_nodes, same
    names = ("max_time", "min_time", "default_time", "min_nodes", "max_gpus")
    known = [name for name in names if getattr(found, name) is not None]
    yield from _equal(key, said, found, known)
    if said.default and pbs.default_queue:
        yield f"{key}.default", said.name, pbs.default_queue, said.name == pbs.default_queue


def compare(site: SourcedSite, cluster: Cluster) -> Drift:
    """Return the differences; values that only one of the two has are not compared."""
    parts = (_single_facts, _partitions, _qos)
    return _drift(site, (pair for make in parts for pair in make(site.value, cluster)))


def _partitions(said: SiteProfile, cluster: Cluster) -> Pairs:
    live = {one.name: one for one in cluster.partitions}
    # A job may name no partition, or any.
    names = [one.select.partition if one.select else one.name for one in said.partitions]
    for index, (name, partition) in enumerate(zip(names, said.partitions, strict=True)):
        key = f"partitions.{index}"
        if name in (None, ANY):
            continue
        yield f"{key}.name", name, _NOT_THERE, name in live
        if name in live and names.count(name) == 1:
            yield from _of_partition(key, partition, live[name])
            yield from _of_nodes(key, partition, name, cluster, said)


def _of_partition(key: str, partition: Partition, live: LivePartition) -> Pairs:
    yield from _equal(key, partition, live, ("max_time", "default_time", "min_nodes", "nodes"))
    said, found = partition.max_nodes, live.largest
    if said is not None and found is not None:
        # Without a limit in the partition, the site may have one in a QOS.
        same = said == found if live.max_nodes else said <= found
        yield f"{key}.max_nodes", said, found, same
    if partition.default and partition.select is None:
        yield f"{key}.default", "true", "false", live.default


def _of_nodes(
    key: str, said: Partition, name: str, cluster: Cluster, profile: SiteProfile
) -> Pairs:
    nodes = [node for node in cluster.nodes if name in node.partitions]
    facts: dict[str, set[Any]] = {
        "cpus_per_node": {node.cpus for node in nodes},
        "gpu_type": {kind for node in nodes for kind in node.gpu_kinds},
        "arch": {node.arch for node in nodes},
    }
    if profile.gpu_request != "none":
        facts["gpus_per_node"] = {node.gpus for node in nodes}
    for fact, found in facts.items():
        mine = getattr(said, fact)
        if mine is not None and found:
            yield f"{key}.{fact}", mine, " or ".join(map(str, sorted(found))), mine in found
    most = max((node.memory for node in nodes if node.memory is not None), default=None)
    if said.mem_per_node is not None and most is not None:
        yield f"{key}.mem_per_node", said.mem_per_node, Memory(most), said.mem_per_node <= most
    wanted = said.select.constraint if said.select else None
    if nodes and wanted and wanted.isidentifier():
        there = any(wanted in node.features for node in nodes)
        yield f"{key}.select.constraint", wanted, _NOT_THERE, there


def _qos(said: SiteProfile, cluster: Cluster) -> Pairs:
    live = {one.name: one for one in cluster.qos}
    for index, qos in enumerate(said.qos if live else ()):
        if qos.name == ANY:
            continue
        yield f"qos.{index}.name", qos.name, _NOT_THERE, qos.name in live
        if found := live.get(qos.name):
            names = ("max_time", "max_nodes", "max_gpus", "max_jobs")
            yield from _equal(f"qos.{index}", qos, found, names)


def _single_facts(said: SiteProfile, cluster: Cluster) -> Pairs:
    """Compare the version, the name, the plug-ins of MPI and the limits that both state."""
    if said.slurm is not None and cluster.version:
        same = f"{cluster.version}.".startswith(f"{said.slurm}.")
        yield "slurm", said.slurm, cluster.version, same
    names = said.detect.clusters if said.detect else ()
    if names:
        yield "detect.clusters", ", ".join(names), cluster.name, cluster.name in names
    plugins, broken = cluster.mpi.plugins, cluster.mpi.broken
    in_image = said.containers.mpi if said.containers else None
    for key, plugin in (("launchers.mpi", said.launchers.mpi), ("containers.mpi", in_image)):
        if plugins and plugin is not None:
            found = "srun cannot load it" if plugin in broken else ", ".join(plugins)
            yield key, plugin, found, plugin in (*plugins, "none") and plugin not in broken
    size, most = said.limits.max_array_size, cluster.limits.max_array_size
    if size is not None and most is not None:
        yield "limits.max_array_size", size, most, size <= most
    requeue, live = said.lifecycle and said.lifecycle.requeue, cluster.limits.requeue
    if requeue is not None and live is not None:
        yield "lifecycle.requeue", requeue, live, requeue == live


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
