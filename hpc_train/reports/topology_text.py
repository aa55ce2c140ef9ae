"""NodeTopology -> lines of text, at most 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from hpc_train.plans.node_topology import GpuPlace, NodeTopology, meaning, nearest_nics

WIDTH = 80
_MOST_COLUMNS = 10


def topology_lines(topology: NodeTopology) -> Iterator[str]:
    """Yield the machine: its NUMA nodes, the places of its GPUs, and the links between these."""
    yield _headline(topology)
    yield from _titled("NUMA nodes", _numa_rows(topology))
    yield from _titled("GPUs, in the order of their cores", _gpu_rows(topology))
    yield from _titled("Links between GPUs", _link_rows(topology))
    yield from _titled("Meaning", _meanings(topology))


def _headline(topology: NodeTopology) -> str:
    """Return the host, and what it has."""
    return f"{topology.host or 'this machine'}: {', '.join(parts_of(topology))}"


def parts_of(topology: NodeTopology) -> tuple[str, ...]:
    """Return what a machine has: GPUs, sockets, NUMA nodes, network adapters."""
    sockets = len({one.socket for one in topology.numa if one.socket is not None})
    parts = (
        f"{len(topology.gpus)} x {topology.gpu_model}" if topology.gpus else "no GPU was found",
        _count(sockets, "socket") if sockets else "",
        _count(len(topology.numa), "NUMA node") if topology.numa else "",
        _count(len(topology.nics), "network adapter") if topology.nics else "",
    )
    return tuple(filter(None, parts))


def _common_label(topology: NodeTopology) -> str:
    """Return the label of the link between GPUs if all pairs have the same; else empty."""
    labels = {link.label for link in topology.links}
    count = len(topology.gpus)
    complete = len(topology.links) == count * (count - 1) // 2
    return labels.pop() if len(labels) == 1 and complete else ""


def _titled(title: str, rows: Iterator[str]) -> Iterator[str]:
    lines = [line for row in rows for line in _wrapped(row)]
    if lines:
        yield ""
        yield title
        yield from lines


def _wrapped(row: str) -> list[str]:
    lead = "  "
    return textwrap.wrap(
        row, WIDTH, initial_indent=lead, subsequent_indent=f"{lead}    ", drop_whitespace=True,
        break_on_hyphens=False, replace_whitespace=False,
    )  # fmt: skip


def _numa_rows(topology: NodeTopology) -> Iterator[str]:
    rows = [("node", "socket", "cores", "adapters")]
    for node in topology.numa:
        nics = [nic.name for nic in topology.nics if nic.numa == node.number]
        socket = "" if node.socket is None else str(node.socket)
        rows.append((str(node.number), socket, node.cpus or "none", ", ".join(nics)))
    yield from _aligned(rows) if topology.numa else ()


def _gpu_rows(topology: NodeTopology) -> Iterator[str]:
    rows = [("rank", "GPU", "node", "cores", "nearest adapters")]
    for rank, place in enumerate(topology.in_order()):
        node = "" if place.numa is None else str(place.numa)
        near = _near(place)
        rows.append((str(rank), str(place.gpu), node, topology.near_cpus(place), near))
    yield from _aligned(rows) if topology.gpus else ()


def _near(place: GpuPlace) -> str:
    names = nearest_nics(place)
    level = dict(place.nics)[names[0]] if names else ""
    return f"{', '.join(names)} ({level})" if names else ""


def _link_rows(topology: NodeTopology) -> Iterator[str]:
    if common := _common_label(topology):
        yield f"all pairs of GPUs: {common}"
        return
    labels = {link.gpus: link.label for link in topology.links}
    numbers = sorted({gpu for pair in labels for gpu in pair})
    if len(numbers) > _MOST_COLUMNS:
        for label in dict.fromkeys(labels.values()):
            pairs = ", ".join(f"{a}-{b}" for (a, b), own in labels.items() if own == label)
            yield f"{label}: {pairs}"
        return
    rows = [("GPU", *map(str, numbers))] if numbers else []
    for one in numbers:
        cells = (labels.get((min(one, o), max(one, o)), "-") for o in numbers)
        rows.append((str(one), *cells))
    yield from _aligned(rows)


def _meanings(topology: NodeTopology) -> Iterator[str]:
    used = [link.label for link in topology.links]
    near = [dict(place.nics)[name] for place in topology.gpus for name in nearest_nics(place)[:1]]
    for label in dict.fromkeys((*used, *near)):
        yield f"{label:<7} {meaning(label)}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows with columns of equal width; columns without a value are left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
