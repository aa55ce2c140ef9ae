"""NodeTopology -> lines of text, at most 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from hpc_train.plans.binding import NodeTopology, meaning, nearest_nics
from hpc_train.reports.report import counted

WIDTH = 80


def topology_lines(topology: NodeTopology) -> Iterator[str]:
    """Yield the machine: its NUMA nodes, the places of its GPUs, and the links between these."""
    gpus, sockets = topology.gpus, {one.socket for one in topology.numa} - {None}
    parts = [f"{len(gpus)} x {topology.gpu_model}" if gpus else "no GPU was found"]
    numbers = (
        (len(sockets), "socket"),
        (len(topology.numa), "NUMA node"),
        (len(topology.nics), "network adapter"),
    )
    parts += [counted(number, noun) for number, noun in numbers if number]
    yield f"{topology.host or 'this machine'}: {', '.join(parts)}"
    sections = {
        "NUMA nodes": _numa_rows(topology) if topology.numa else (),
        "GPUs, in the order of their cores": _gpu_rows(topology) if gpus else (),
        "Links between GPUs": _link_rows(topology),
        "Meaning": _meanings(topology),
    }
    for title, rows in sections.items():
        lines = [
            line
            for row in rows
            for line in textwrap.wrap(
                row, WIDTH, initial_indent="  ", subsequent_indent="      ",
                break_on_hyphens=False, replace_whitespace=False,
            )
        ]  # fmt: skip
        yield from ("", title, *lines) if lines else ()


def _numa_rows(topology: NodeTopology) -> Iterator[str]:
    rows = [("node", "socket", "cores", "adapters")]
    for node in topology.numa:
        nics = [nic.name for nic in topology.nics if nic.numa == node.number]
        socket = "" if node.socket is None else str(node.socket)
        rows.append((str(node.number), socket, node.cpus or "none", ", ".join(nics)))
    yield from _aligned(rows)


def _gpu_rows(topology: NodeTopology) -> Iterator[str]:
    rows = [("rank", "GPU", "node", "cores", "nearest adapters")]
    for rank, place in enumerate(topology.in_order()):
        node, names = "" if place.numa is None else str(place.numa), nearest_nics(place)
        near = f"{', '.join(names)} ({dict(place.nics)[names[0]]})" if names else ""
        rows.append((str(rank), str(place.gpu), node, topology.near_cpus(place), near))
    yield from _aligned(rows)


def _link_rows(topology: NodeTopology) -> Iterator[str]:
    labels = {link.gpus: link.label for link in topology.links}
    different, count = set(labels.values()), len(topology.gpus)
    if len(different) == 1 and len(topology.links) == count * (count - 1) // 2:
        yield f"all pairs of GPUs: {different.pop()}"
        return
    for label in dict.fromkeys(labels.values()):
        pairs = ", ".join(f"{a}-{b}" for (a, b), own in labels.items() if own == label)
        yield f"{label}: {pairs}"


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
