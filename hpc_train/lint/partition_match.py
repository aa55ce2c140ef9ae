"""Match a script's directives with the partitions and qualities of service of a site.

The module also finds the requests that exceed a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpc_train.lint.requested_resources import RequestedResources
from hpc_train.model.partition import ANY, Partition, Select
from hpc_train.model.queue_limits import JobQueue, PartitionEntry, SizeName, limits_on, qos_named
from hpc_train.model.site import SiteProfile
from hpc_train.model.units import slurm_memory, slurm_seconds
from hpc_train.model.value import Value

_GPU_OPTIONS = ("gpus-per-node", "gres", "gpus")


class Excess(Value, frozen=True, kw_only=True):
    """A requested size, the options that request it, and the smaller limit of `who`."""

    options: tuple[str, ...]
    wanted: int
    most: Any
    who: str
    note: str = ""
    shown: str = ""


def known_partitions(site: SiteProfile) -> tuple[str, ...]:
    """Return the values of --partition that the profile names."""
    words = [_select(one).partition for one in site.partitions]
    return tuple(word for word in words if word not in (None, ANY))


def selected_otherwise(site: SiteProfile) -> tuple[str, ...]:
    """Return the entries that a job selects without --partition: by constraint or account.

    Slurm's own names of their partitions are not in the profile.
    """
    return tuple(one.name for one in site.partitions if _select(one).partition is None)


def has_open_partitions(site: SiteProfile) -> bool:
    """Return whether the profile lists some partitions and allows any other."""
    return ANY in (_select(one).partition for one in site.partitions)


def queue_of(site: SiteProfile, asked: RequestedResources) -> JobQueue:
    """Return the partition and the qos that a script selects."""
    found = _partition(site, asked)
    name = found[1].name if found else None
    qos = qos_named(site, asked.value("qos"), name)
    return JobQueue(partition=found, qos=qos, account=asked.value("account"))


def excesses(asked: RequestedResources, queue: JobQueue) -> Iterator[Excess]:
    """Yield the requests of a script that exceed the limits of its queue."""
    if queue.partition is not None:
        yield from _of_node(asked, queue.partition[1])
    gpus = asked.nodes * asked.gpus_per_node if asked.nodes and asked.gpus_per_node else None
    sizes: dict[SizeName, tuple[tuple[str, ...], int | None, str]] = {
        "nodes": (("nodes",), asked.nodes, ""),
        "gpus": (_GPU_OPTIONS, gpus, f"{gpus} GPUs on all nodes"),
        "time": (("time",), slurm_seconds(asked.value("time") or ""), ""),
    }
    for size, (options, wanted, shown) in sizes.items():
        for limit in limits_on(size, queue, asked.nodes) if wanted else ():
            if wanted and wanted > limit.value:
                yield Excess(
                    options=options,
                    wanted=wanted,
                    most=limit.value,
                    who=limit.who,
                    note=limit.note,
                    shown=shown,
                )


def _of_node(asked: RequestedResources, partition: Partition) -> Iterator[Excess]:
    cores = (asked.tasks_per_node or 0) * (asked.cpus_per_task or 1)
    tasks = ("ntasks-per-node", "cpus-per-task")
    sizes: tuple[tuple[tuple[str, ...], int | None, Any, str], ...] = (
        (_GPU_OPTIONS, asked.gpus_per_node, partition.gpus_per_node, ""),
        (tasks, cores, partition.cpus_per_node, f"{cores} cores a node"),
        (("mem",), slurm_memory(asked.value("mem") or ""), partition.mem_per_node, ""),
    )
    for options, wanted, most, shown in sizes:
        if wanted and most is not None and wanted > most:
            who = partition.name
            yield Excess(options=options, wanted=wanted, most=most, who=who, shown=shown)


def _partition(site: SiteProfile, asked: RequestedResources) -> PartitionEntry | None:
    """Return the most specific entry that matches the directives, else the catch-all entry."""
    entries = list(enumerate(site.partitions))
    found = [entry for entry in entries if entry[1].name != ANY and _leads(entry[1], asked)]
    if not found:
        return next((entry for entry in entries if entry[1].name == ANY), None)
    most = max(_words(entry) for _, entry in found)
    closest = [entry for entry in found if _words(entry[1]) == most]
    return closest[0] if len(closest) == 1 else next((e for e in closest if e[1].default), None)


def _select(partition: Partition) -> Select:
    return partition.select or Select(partition=partition.name)


def _words(entry: Partition) -> int:
    select = _select(entry)
    return sum(word is not None for word in (select.qos, select.constraint, select.account_suffix))


def _leads(entry: Partition, asked: RequestedResources) -> bool:
    select, named = _select(entry), asked.value("partition")
    terms = set((select.constraint or "").split("&")) - {""}
    return (
        (select.partition == named if named else select.partition is None or entry.default)
        and select.qos in (None, asked.value("qos"))
        and terms <= set((asked.value("constraint") or "").split("&"))
        and (asked.value("account") or "").endswith(select.account_suffix or "")
    )
