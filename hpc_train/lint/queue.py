"""Which of a site's partitions and qualities of service a script's directives lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hpc_train.lint.asked import Asked
from hpc_train.model.partition import ANY, Partition, Qos, Select, bound_for
from hpc_train.model.site import SiteProfile
from hpc_train.model.units import Duration, Memory
from hpc_train.model.value import Value

_TIME = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")


class Limit(Value, frozen=True, kw_only=True):
    """A size, the options that ask for it, and the most that `who` gives."""

    options: tuple[str, ...]
    wanted: int | None
    most: Any
    who: str
    shown: str = ""


def known_partitions(site: SiteProfile) -> tuple[str, ...]:
    """Return the words that --partition takes; none where any will do, or where none is used."""
    words = [_select(one).partition for one in site.partitions]
    return () if ANY in words else tuple(word for word in words if word is not None)


def partition_of(site: SiteProfile, asked: Asked) -> Partition | None:
    """Return the one entry that most of the script's words lead to, else that for any words."""
    found = [one for one in site.partitions if one.name != ANY and _leads(one, asked)]
    if not found:
        return next((one for one in site.partitions if one.name == ANY), None)
    most = max(map(_words, found))
    closest = [one for one in found if _words(one) == most]
    return closest[0] if len(closest) == 1 else next((one for one in closest if one.default), None)


def qos_of(site: SiteProfile, asked: Asked, partition: Partition | None) -> Qos | None:
    """Return the qos that is asked for, or the default one."""
    name = asked.value("qos")
    for qos in site.qos:
        mine = not qos.partitions or (partition is not None and partition.name in qos.partitions)
        if qos.name == name or (name is None and qos.default and mine):
            return qos
    return None


def limits(asked: Asked, partition: Partition | None, qos: Qos | None) -> Iterator[Limit]:
    """Yield what a script asks for beside what there is."""
    if partition is not None:
        yield from _of_node(asked, partition)
        yield from _of_queue(asked, partition, partition.name)
    if qos is not None:
        yield from _of_queue(asked, qos, f"qos {qos.name}")


def _of_node(asked: Asked, partition: Partition) -> Iterator[Limit]:
    cores = (asked.tasks_per_node or 0) * (asked.cpus_per_task or 1)
    sizes: tuple[tuple[tuple[str, ...], int | None, Any, str], ...] = (
        (("gpus-per-node", "gres", "gpus"), asked.gpus_per_node, partition.gpus_per_node, ""),
        (
            ("ntasks-per-node", "cpus-per-task"),
            cores,
            partition.cpus_per_node,
            f"{cores} cores a node",
        ),
        (("mem",), _memory(asked.value("mem")), partition.mem_per_node, ""),
    )
    for options, wanted, most, shown in sizes:
        who = partition.name
        yield Limit(options=options, wanted=wanted, most=most, who=who, shown=shown)


def _of_queue(asked: Asked, queue: Partition | Qos, who: str) -> Iterator[Limit]:
    nodes = asked.nodes
    most = {key: getattr(queue, key) for key in ("max_nodes", "max_gpus", "max_time")}
    if isinstance(queue, Partition) and nodes is not None:
        for key in most:
            bound = bound_for(queue, key, nodes, asked.value("account"))
            most[key] = getattr(bound[1], key) if bound else most[key]
    time = slurm_seconds(asked.value("time") or "")
    gpus = nodes * asked.gpus_per_node if nodes and asked.gpus_per_node else None
    shown = f"{gpus} GPUs on all nodes"
    yield Limit(options=("nodes",), wanted=nodes, most=most["max_nodes"], who=who)
    options = ("gpus-per-node", "gres", "gpus")
    yield Limit(options=options, wanted=gpus, most=most["max_gpus"], who=who, shown=shown)
    yield Limit(options=("time",), wanted=time, most=most["max_time"], who=who)
    if queue.max_node_minutes is not None and nodes:
        area = Duration(queue.max_node_minutes * 60 // nodes)
        yield Limit(options=("time",), wanted=time, most=area, who=f"{who} for {nodes} nodes")


def slurm_seconds(text: str) -> int | None:
    """Read a time as sbatch does: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    days, first, second, third = (int(part) if part else 0 for part in match.groups())
    if match[1] is not None:
        return days * 86400 + first * 3600 + second * 60 + third
    if match[4] is not None:
        return first * 3600 + second * 60 + third
    return first * 60 + second


def _memory(text: str | None) -> int | None:
    """A bare number is megabytes."""
    try:
        return Memory.parse(f"{text}M" if (text or "").isdigit() else text)
    except ValueError:
        return None


def _select(partition: Partition) -> Select:
    return partition.select or Select(partition=partition.name)


def _words(entry: Partition) -> int:
    select = _select(entry)
    return sum(word is not None for word in (select.qos, select.constraint, select.account_suffix))


def _leads(entry: Partition, asked: Asked) -> bool:
    select, named = _select(entry), asked.value("partition")
    terms = set((select.constraint or "").split("&")) - {""}
    return (
        (select.partition == named if named else select.partition is None or entry.default)
        and select.qos in (None, asked.value("qos"))
        and terms <= set((asked.value("constraint") or "").split("&"))
        and (asked.value("account") or "").endswith(select.account_suffix or "")
    )
