"""Validation of a profile's partitions and qualities of service beyond their types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from hpc_train.errors import SiteProfileError, nearest
from hpc_train.model.partition import ANY, Partition, Qos
from hpc_train.model.site import SourcedSite
from hpc_train.timed_regex import whole_match

Queue = Partition | Qos

_PAIRS = (("min_nodes", "max_nodes"), ("min_gpus", "max_gpus"), ("min_time", "max_time"))


def check_queues(site: SourcedSite) -> None:
    """Refuse duplicate names, two defaults, empty ranges, and unknown names.

    Raises:
        SiteProfileError: with file:line.
    """
    profile = site.value
    _check_list(site, "partitions", profile.partitions)
    _check_list(site, "qos", profile.qos)
    for index, partition in enumerate(profile.partitions):
        _check_partition(site, partition, f"partitions.{index}")
    names = [partition.name for partition in profile.partitions]
    for index, qos in enumerate(profile.qos):
        for name in qos.partitions:
            if name not in names and ANY not in names:
                raise SiteProfileError(
                    f"{site.near(f'qos.{index}.partitions')}: qos {qos.name}: unknown partition "
                    f"{name!r}{nearest(name, names)}; known: {', '.join(names) or 'none'}"
                )
    _check_choice(site)
    _check_account(site)


def _check_list(site: SourcedSite, key: str, items: Sequence[Queue]) -> None:
    seen: dict[str, int] = {}
    defaults: list[int] = []
    for index in range(len(items)):
        item: Queue = items[index]
        if item.name in seen:
            first = site.near(f"{key}.{seen[item.name]}.name")
            raise SiteProfileError(
                f"{site.near(f'{key}.{index}.name')}: {key}: duplicate name {item.name!r} ({first})"
            )
        seen[item.name] = index
        if item.default:
            for other in defaults:
                _check_default(site, key, items, (other, index))
            defaults.append(index)


def _check_default(
    site: SourcedSite, key: str, items: Sequence[Queue], pair: tuple[int, int]
) -> None:
    """Each partition may have its own default quality of service."""
    first, second = pair
    ours, theirs = _partitions(items[second]), _partitions(items[first])
    if not ours or not theirs or ours & theirs:
        raise SiteProfileError(
            f"{site.near(f'{key}.{second}.default')}: two defaults: {items[first].name} "
            f"({site.near(f'{key}.{first}.default')}) and {items[second].name}"
        )


def _partitions(item: Queue) -> set[str]:
    return set(item.partitions) if isinstance(item, Qos) else set()


def _check_partition(site: SourcedSite, partition: Partition, key: str) -> None:
    for low, high in _PAIRS:
        least, most = getattr(partition, low), getattr(partition, high)
        if least is not None and most is not None and least > most:
            _refuse(site, f"{key}.{low}", f"{low} = {least}, but {high} = {most}")
    facts = partition
    if facts.nodes and facts.max_nodes and facts.max_nodes > facts.nodes:
        _refuse(site, f"{key}.max_nodes", f"max_nodes = {facts.max_nodes} of {facts.nodes} nodes")
    if facts.default_time and facts.max_time and facts.default_time > facts.max_time:
        _refuse(
            site,
            f"{key}.default_time",
            f"default_time = {facts.default_time}, but max_time = {facts.max_time}",
        )
    _check_shares(site, partition, key)
    gpus = facts.gpus_per_node or 0
    if facts.gpu_order and sorted(facts.gpu_order) != list(range(gpus)):
        _refuse(site, f"{key}.gpu_order", f"gpu_order must name each GPU of 0 to {gpus - 1} once")
    if facts.gpu_nics and len(facts.gpu_nics) != gpus:
        message = f"gpu_nics must have the nearest adapters of each of the {gpus} GPUs"
        _refuse(site, f"{key}.gpu_nics", message)
    strange = [number for number in facts.gpu_numa if number >= len(facts.numa_cpus)]
    if facts.gpu_numa and (strange or len(facts.gpu_numa) != gpus):
        message = f"gpu_numa must have one of the {len(facts.numa_cpus)} NUMA nodes of numa_cpus"
        _refuse(site, f"{key}.gpu_numa", f"{message} for each of the {gpus} GPUs")


def _check_shares(site: SourcedSite, partition: Partition, key: str) -> None:
    """Check that the shares of all GPUs of a node do not exceed the node."""
    for share, whole in (("cpus_per_gpu", "cpus_per_node"), ("mem_per_gpu", "mem_per_node")):
        each, there = getattr(partition, share), getattr(partition, whole)
        gpus = partition.gpus_per_node
        if each and there and gpus and each * gpus > there:
            product = type(each)(each * gpus)
            _refuse(
                site, f"{key}.{share}", f"{share} x {gpus} GPUs = {product}, but {whole} = {there}"
            )


def _check_choice(site: SourcedSite) -> None:
    profile = site.value
    defaults = [one.name for one in profile.partitions if one.default]
    if defaults and profile.partition_choice == "job":
        _refuse(site, "partition_choice", f"job, but {defaults[0]} is the default")
    if profile.partition_choice == "fitting" and not profile.partitions:
        _refuse(site, "partition_choice", "fitting, but there are no partitions to choose from")
    if any(one.name == ANY and one.default for one in profile.partitions):
        _refuse(site, "partitions", f"{ANY!r} is a wildcard, and cannot be the default")


def _check_account(site: SourcedSite) -> None:
    account = site.value.account
    if account.pattern is None:
        return
    try:
        re.compile(account.pattern)
    except (re.error, OverflowError, RecursionError) as failure:
        _refuse(site, "account.pattern", f"invalid regular expression: {failure}")
    if account.example is not None and not whole_match(account.pattern, account.example):
        _refuse(site, "account.example", f"{account.example!r} does not match the pattern")


def _refuse(site: SourcedSite, key: str, text: str) -> NoReturn:
    raise SiteProfileError(f"{site.near(key)}: {key}: {text}")
