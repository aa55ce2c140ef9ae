"""Measured bandwidths -> what they say of a network: headline, share of a link, number of ranks.

GB/s are 1e9 B/s, link rates Gb/s as vendors state them. The bus bandwidth is the algorithm's
(message size / time) times a factor that makes it comparable between collectives and numbers of
ranks; a collective over one rank sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hpc_train.model.record import Record

_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "broadcast": lambda _: 1.0,
    "reduce": lambda _: 1.0,
    "sendrecv": lambda _: 1.0,
    "hypercube": lambda _: 1.0,
}
COLLECTIVES = tuple(_FACTORS)
# Of the tables: two decimals are printed.
_ROUNDING = 0.005
_PLACEMENTS = ("out_of_place", "in_place", "")


class Headline(NamedTuple):
    """The bandwidth of the largest messages [GB/s], of the better placement (`variant`)."""

    metric: str
    value: float
    message_size: int
    variant: str


def factor(collective: str, ranks: int) -> float:
    """Return bus bandwidth / algorithm bandwidth of a collective.

    Raises:
        KeyError: none of `COLLECTIVES`.
    """
    return _FACTORS[collective](ranks) if ranks > 1 else 0.0


def fits(algbw: float, busbw: float, ranks: int, collective: str = "") -> bool:
    """Return whether two bandwidths of one row, as printed, can come from so many ranks.

    Without a collective, any may have been measured.
    """
    names = (collective,) if collective else COLLECTIVES
    return any(
        abs(algbw * factor(name, ranks) - busbw) <= _ROUNDING * (1 + factor(name, ranks)) * 1.01
        for name in names
    )


def headline(records: Iterable[Record]) -> Headline | None:
    """Return the bandwidth that stands for a benchmark; None if none was measured.

    Bus bandwidth where there is one, else that of a pair (`algbw`). Averages over all sizes, peaks
    and other variants do not count.
    """
    found = [
        Headline(record.metric, record.value, record.message_size, record.variant)
        for record in records
        if record.metric in ("busbw", "algbw")
        and record.variant in _PLACEMENTS
        and record.message_size is not None
    ]
    bus = [one for one in found if one.metric == "busbw"]
    return max(bus or found, key=lambda one: (one.message_size, one.value), default=None)


def wire(busbw: float, ranks: int, nodes: int) -> float | None:
    """Return what one rank sends over the network [GB/s] in an all-reduce, none on one node.

    A tree or two levels cross nodes less often than a ring counts: the bus bandwidth of few nodes
    exceeds what their links carry, and is no share of them.
    """
    return busbw * (nodes - 1) / (ranks - 1) if nodes > 1 and ranks >= nodes else None


def share_of_link(bandwidth: float, link_gbits: float) -> float:
    """Return the share of a link's rate [Gb/s] that a bandwidth [GB/s] is, 1.0 = all of it."""
    return bandwidth * 8 / link_gbits
