"""The assumptions of a twin about its site: the values that the profile does not state."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lab.twins.account_patterns import lua_patterns
from hpc_train.lab.twins.partitions import (
    UNKNOWN_CPUS,
    UNKNOWN_GPUS,
    known_nodes,
    most,
    pools,
    queue_name,
    shape_of,
    stands_for_others,
    twin_partitions,
)
from hpc_train.model.partition import ANY, Partition
from hpc_train.model.site import SiteProfile


def assumptions(profile: SiteProfile) -> tuple[str, ...]:
    """Return one sentence for each assumption."""
    partitions = twin_partitions(profile)
    return (
        _accounts(profile),
        *_partitions(profile),
        *_sizes(profile, partitions),
        *_limits(partitions),
        *_qos(profile),
    )


def _accounts(profile: SiteProfile) -> str:
    pattern = profile.account.pattern
    if pattern is None:
        return "accounts: the profile has no pattern; any account is accepted"
    if lua_patterns(pattern) is None:
        return f"accounts: any account is accepted; the twin cannot compare it with {pattern}"
    return f"accounts: any account that matches {pattern} is accepted"


def _partitions(profile: SiteProfile) -> Iterator[str]:
    unnamed = [one for one in twin_partitions(profile) if stands_for_others(one)]
    if unnamed:
        yield f"partitions: the profile names none; the twin has one, {queue_name(unnamed[0])}"
    elif any(map(stands_for_others, profile.partitions)):
        yield "partitions: the site has more than the profile names; the twin refuses the others"


def _sizes(profile: SiteProfile, partitions: tuple[Partition, ...]) -> Iterator[str]:
    found = pools(profile)
    counts: dict[int, list[Partition]] = {}
    for one in partitions:
        if known_nodes(one) is None:
            counts.setdefault(found[shape_of(one, profile)].count, []).append(one)
    for count, entries in counts.items():
        yield f"nodes of {_names(entries)}: number unknown; the twin has {count}"
    cores = [one for one in partitions if one.cpus_per_node is None]
    for cpus in sorted({shape_of(one, profile).cpus for one in cores}):
        mine = [one for one in cores if shape_of(one, profile).cpus == cpus]
        why = "from the cores per GPU" if cpus > UNKNOWN_CPUS else "unknown"
        yield f"cores of a node of {_names(mine)}: {why}; the twin has {cpus}"
    gpus = [one for one in partitions if one.gpus_per_node is None]
    if gpus and profile.gpu_request != "none":
        yield f"GPUs of a node of {_names(gpus)}: unknown; the twin has {UNKNOWN_GPUS}"
    memory = [one for one in partitions if one.mem_per_node is None]
    if memory:
        yield f"memory of a node of {_names(memory)}: unknown; not limited"


def _limits(partitions: tuple[Partition, ...]) -> Iterator[str]:
    """Name the partitions whose jobs only the qualities of service limit."""
    times = [one for one in partitions if most(one, "time") is None and not one.max_node_minutes]
    if times:
        yield f"time limit of {_names(times)}: unknown; not limited by the partition"


def _qos(profile: SiteProfile) -> Iterator[str]:
    listed = [qos for qos in profile.qos if qos.name != ANY]
    free = [q.name for q in listed if not (q.max_time or q.max_nodes or q.max_gpus)]
    if free:
        yield f"limits of qos {', '.join(free)}: unknown; not limited"
    if listed and len(listed) < len(profile.qos):
        yield "qos: the site has more than the profile lists; the twin refuses the others"


def _names(partitions: list[Partition]) -> str:
    return ", ".join(queue_name(one) if one.name == ANY else one.name for one in partitions)
