"""Measured bandwidths -> the headline value, and its share of a link.

GB/s are 1e9 B/s, link rates Gb/s as vendors state them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hpc_train.errors import ReportError, UnknownNameError
from hpc_train.model.record import Record

PLACEMENTS = ("out_of_place", "in_place", "")
# How often (n - 1)/n of the data pass a link; 0 where all of it does, once.
_BUS_FACTORS = {
    "all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1, "broadcast": 0,
    "reduce": 0,
}  # fmt: skip


class Headline(NamedTuple):
    """The bandwidth of the largest messages [GB/s], of the better placement (`variant`)."""

    metric: str
    value: float
    message_size: int
    variant: str


def headline(records: Iterable[Record]) -> Headline | None:
    """Return the bandwidth that stands for a benchmark; None if none was measured.

    Bus bandwidth where there is one, else that of a pair (`algbw`). Averages over all sizes, peaks
    and other variants do not count.
    """
    found = [
        Headline(record.metric, record.value, record.message_size, record.variant)
        for record in records
        if record.metric in ("busbw", "algbw")
        and record.variant in PLACEMENTS
        and record.message_size is not None
    ]
    bus = [one for one in found if one.metric == "busbw"]
    return max(bus or found, key=lambda one: (one.message_size, one.value), default=None)


def share_of_link(bandwidth: float, link_gbits: float) -> float:
    """Return the share of a link's rate [Gb/s] that a bandwidth [GB/s] is, 1.0 = all of it."""
    return bandwidth * 8 / link_gbits


def bus_factor(operation: str, ranks: int) -> float:
    """Return busbw/algbw of a collective over n ranks (NVIDIA, nccl-tests, doc/PERFORMANCE.md).

    All-reduce 2 (n - 1)/n; all-gather, reduce-scatter and all-to-all (n - 1)/n; broadcast and
    reduce 1: bus bandwidth is then that of the slowest link, whatever n is.

    Raises:
        ReportError: fewer than two ranks.
        UnknownNameError: no such operation.
    """
    if ranks < 2:
        raise ReportError(f"a bus bandwidth is between 2 ranks or more, not {ranks}")
    if operation not in _BUS_FACTORS:
        raise UnknownNameError("operation", operation, _BUS_FACTORS)
    times = _BUS_FACTORS[operation]
    return times * (ranks - 1) / ranks if times else 1.0


def wire_bandwidth(busbw: float, nodes: int, ranks: int) -> float:
    """Return what each GPU sends to other nodes [GB/s] in a hierarchical all-reduce.

    busbw (k - 1)/(n - 1) for n ranks on k nodes: the rest stays inside the nodes, so that on two
    nodes the bus bandwidth is almost twice that of the wire (NVIDIA/nccl-tests issue 196).

    Raises:
        ReportError: fewer than two nodes, or fewer ranks than nodes.
    """
    if not 2 <= nodes <= ranks:
        raise ReportError(
            f"a wire is between 2 nodes or more with a rank on each, not {nodes} with {ranks} ranks"
        )
    return busbw * (nodes - 1) / (ranks - 1)
