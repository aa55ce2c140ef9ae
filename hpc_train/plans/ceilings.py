"""What a queue allows a job at most: its partition's words, its bounds' and its qos'."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpc_train.model.partition import Bound, Partition, Qos, bound_for
from hpc_train.model.units import Duration
from hpc_train.model.value import Value
from hpc_train.plans.context import Site
from hpc_train.plans.queue_options import Queue


class Ceiling(Value, frozen=True, kw_only=True):
    """A limit, whose it is, and where the profile says it."""

    value: Any
    who: str
    place: str
    note: str = ""


def ceilings(name: str, queue: Queue, site: Site, nodes: int) -> Iterator[Ceiling]:
    """Yield the limits on `nodes`, `gpus` (of all nodes) or `time` for a job of so many nodes."""
    key = f"max_{name}"
    if queue.partition is not None:
        yield from _of_partition(key, queue, site, nodes)
    if queue.qos is not None:
        index, qos = queue.qos
        yield from _given(getattr(qos, key), f"qos {qos.name}", site.near(f"qos.{index}.{key}"))
    if name == "time":
        yield from _by_area(queue, site, nodes)


def _given(value: Any, who: str, place: str) -> Iterator[Ceiling]:
    if value is not None:
        yield Ceiling(value=value, who=who, place=place)


def _of_partition(key: str, queue: Queue, site: Site, nodes: int) -> Iterator[Ceiling]:
    """What a bound says stands instead of the partition's own word."""
    if queue.partition is None:
        return
    index, partition = queue.partition
    path = f"partitions.{index}"
    bound = bound_for(partition, key, nodes, queue.account)
    if bound is not None:
        yield Ceiling(
            value=getattr(bound[1], key),
            who=partition.name,
            place=site.near(f"{path}.bounds.{bound[0]}.{key}"),
            note=_described(bound[1]),
        )
    else:
        yield from _given(getattr(partition, key), partition.name, site.near(f"{path}.{key}"))
    if key == "max_nodes":
        yield from _given(partition.nodes, partition.name, site.near(f"{path}.nodes"))


def _described(bound: Bound) -> str:
    nodes = f"for {bound.nodes} nodes" if bound.nodes else ""
    account = f"for the account {bound.account}" if bound.account else ""
    return " ".join(filter(None, (nodes, account)))


def _by_area(queue: Queue, site: Site, nodes: int) -> Iterator[Ceiling]:
    """Nodes x minutes are a limit on the time of so many nodes."""
    entries: list[tuple[str, str, Partition | Qos]] = []
    if queue.partition is not None:
        index, partition = queue.partition
        entries.append((f"partitions.{index}", partition.name, partition))
    if queue.qos is not None:
        index, qos = queue.qos
        entries.append((f"qos.{index}", f"qos {qos.name}", qos))
    for path, who, entry in entries:
        if entry.max_node_minutes is not None:
            yield Ceiling(
                value=Duration(entry.max_node_minutes * 60 // nodes),
                who=who,
                place=site.near(f"{path}.max_node_minutes"),
                note=f"({entry.max_node_minutes} node-minutes over {nodes} nodes)",
            )
