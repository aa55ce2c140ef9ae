"""Measured bandwidths -> what they say of a network: the headline, and its share of a link.

GB/s are 1e9 B/s, link rates Gb/s as vendors state them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hpc_train.model.record import Record

PLACEMENTS = ("out_of_place", "in_place", "")


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
