"""Measured bandwidths -> the headline value, and its share of a link.

GB/s are 1e9 B/s, link rates Gb/s as vendors state them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.model.record import Record
from hpc_train.tables.run_flags import NO_RATE

if TYPE_CHECKING:
    from hpc_train.tables.record_arrays import RecordArrays

_OF_A_NETWORK = (
    "a benchmark, not a training: busbw {:.4g} GB/s of the largest messages; "
    "hpctrain collect prints all values"
)
PLACEMENTS = ("out_of_place", "in_place", "")


class LargestMessageBandwidth(NamedTuple):
    """The bandwidth of the largest messages [GB/s], of the better placement (`variant`)."""

    metric: str
    value: float
    message_size: int
    variant: str


def headline(records: Iterable[Record]) -> LargestMessageBandwidth | None:
    """Return the headline bandwidth of a benchmark; None if none was measured.

    The bus bandwidth if there is one, else that of a pair (`algbw`). Averages over all sizes, peaks
    and other variants do not count.
    """
    found = [
        LargestMessageBandwidth(record.metric, record.value, record.message_size, record.variant)
        for record in records
        if record.metric in ("busbw", "algbw")
        and record.variant in PLACEMENTS
        and record.message_size is not None
    ]
    bus = [one for one in found if one.metric == "busbw"]
    return max(bus or found, key=lambda one: (one.message_size, one.value), default=None)


def share_of_link(bandwidth: float, link_gbits: float) -> float:
    """Return a bandwidth [GB/s] as a share of a link's rate [Gb/s]; 1.0 is the full rate."""
    return bandwidth * 8 / link_gbits


def largest_busbw(fields: RecordArrays) -> dict[str, float]:
    """Return run -> busbw [GB/s] at its largest message, of the better placement as `headline`.

    busbw as NVIDIA's nccl-tests define it (doc/PERFORMANCE.md): algbw times the factor of the
    collective, 2(n-1)/n for all-reduce.
    """
    import numpy as np

    stated = (fields.metric.among(["busbw"]) >= 0) & (fields.variant.among(PLACEMENTS) >= 0)
    # A size that is absent is negative.
    own = fields.take(np.flatnonzero(stated & (fields.message_size >= 0) & (fields.value > 0)))
    order = np.lexsort((own.value, own.message_size)).tolist()
    names, run = own.run.names, own.run.codes.tolist()
    # The last value of a run remains.
    best = {names[run[place]]: float(own.value[place]) for place in order}
    return dict(sorted(best.items()))


def with_bandwidths(
    reasons: Sequence[str], names: Sequence[str], fields: RecordArrays
) -> list[str]:
    """Return why runs have no result; a benchmark of a network has bandwidths instead."""
    if not any(reason.endswith(NO_RATE) for reason in reasons):
        return list(reasons)
    found = largest_busbw(fields)
    return [
        _OF_A_NETWORK.format(found[name]) if reason.endswith(NO_RATE) and name in found else reason
        for name, reason in zip(names, reasons, strict=True)
    ]
