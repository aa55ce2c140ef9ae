"""NodeTopology -> the places of its NUMA nodes, GPUs and adapters in a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpc_train.model.node_topology import DISTANCES, GpuLink, GpuPlace, NodeTopology, NumaNode
from hpc_train.reports.topology_text import common_label

SLOT, BOX, LINE, PAD, GAP = 88, 74, 28, 14, 56
_NARROWEST = 150
_NUMA_TEXT = 58
_TITLE = 44


class Column(NamedTuple):
    node: NumaNode | None
    gpus: tuple[GpuPlace, ...]
    nics: tuple[str, ...]
    left: float

    @property
    def width(self) -> float:
        return max(_NARROWEST, SLOT * max(len(self.gpus), len(self.nics)) + 2 * PAD)

    def centre(self, index: int, count: int) -> float:
        """Return the middle of a box, which is one of so many in its row."""
        return self.left + self.width / 2 + (index - (count - 1) / 2) * SLOT


class Sheet(NamedTuple):
    topology: NodeTopology
    columns: tuple[Column, ...]
    top: float

    @property
    def gpus(self) -> dict[int, float]:
        """Return the middle of each GPU."""
        return {
            place.gpu: column.centre(index, len(column.gpus))
            for column in self.columns
            for index, place in enumerate(column.gpus)
        }

    @property
    def nics(self) -> dict[str, float]:
        """Return the middle of each adapter."""
        return {
            name: column.centre(index, len(column.nics))
            for column in self.columns
            for index, name in enumerate(column.nics)
        }

    @property
    def width(self) -> float:
        """Return the width of the columns."""
        return max((one.left + one.width for one in self.columns), default=0) + 2 * PAD

    @property
    def bottom(self) -> float:
        """Return the lower edge of the sockets."""
        return self.top + 3 * PAD + 2 * LINE + GAP + _NUMA_TEXT


def sheet_of(topology: NodeTopology) -> Sheet:
    """Return the places of everything, below the links between GPUs."""
    columns = _columns(topology)
    return Sheet(topology, columns, _TITLE + _height_of_links(topology, columns))


def drawn_links(topology: NodeTopology) -> tuple[GpuLink, ...]:
    """Return the links that are drawn one by one: those for GPUs only, and the nearest by PCIe."""
    near = ("PIX", "PXB")
    if common_label(topology):
        return ()
    return tuple(link for link in topology.links if link.direct or link.kind in near)


def _height_of_links(topology: NodeTopology, columns: Sequence[Column]) -> float:
    links = drawn_links(topology)
    if not links:
        return 40 if topology.links else 8
    return 34 + 13 * max(span(columns, link) for link in links)


def span(columns: Sequence[Column], link: GpuLink) -> int:
    """Return how many boxes lie between two GPUs in the drawing."""
    order = [place.gpu for column in columns for place in column.gpus]
    return abs(order.index(link.gpus[0]) - order.index(link.gpus[1])) if order else 0


def _columns(topology: NodeTopology) -> tuple[Column, ...]:
    """Return the NUMA nodes that have anything, and one column for what has no known node."""
    known = {one.number for one in topology.numa}
    stated = [place.numa for place in topology.gpus if place.numa is not None]
    nodes = [*topology.numa, *(NumaNode(number=n) for n in sorted({*stated} - known))]
    found: list[Column] = []
    left = float(2 * PAD)
    for node in (*sorted(nodes, key=_by_socket), None):
        number = node.number if node else None
        gpus = tuple(place for place in topology.gpus if place.numa == number)
        nics = tuple(nic.name for nic in topology.nics if _node_of(topology, nic.name) == number)
        if gpus or nics or (node and node.cpus):
            apart = found and socket_of(found[-1]) != (node.socket if node else None)
            left += 2 * PAD if apart else 0
            found.append(Column(node, gpus, nics, left))
            left += found[-1].width + PAD
    return tuple(found)


def _by_socket(node: NumaNode) -> tuple[int, int]:
    return (-1 if node.socket is None else node.socket), node.number


def socket_of(column: Column) -> int | None:
    return column.node.socket if column.node else None


def _node_of(topology: NodeTopology, name: str) -> int | None:
    """Return the NUMA node of an adapter, else that of the nearest GPU."""
    own = next((nic.numa for nic in topology.nics if nic.name == name), None)
    if own is not None:
        return own
    order = list(DISTANCES)[:-1]
    levels = [
        (order.index(level), place.gpu, place.numa)
        for place in topology.gpus
        for nic, level in place.nics
        if nic == name and level in order
    ]
    return min(levels, default=(0, 0, None))[2]
