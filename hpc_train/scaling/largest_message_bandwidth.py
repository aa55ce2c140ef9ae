"""Measured bandwidths -> tables by message size, and the busbw of the largest messages.

GB/s are 1e9 B/s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpc_train.base.value import Value

# What a benchmark of a network states, the most important first.
BANDWIDTHS = ("busbw", "algbw", "latency")

if TYPE_CHECKING:
    from hpc_train.scaling.record_arrays import RecordArrays

PLACEMENTS = ("out_of_place", "in_place", "")


def largest_busbw(fields: RecordArrays) -> dict[str, float]:
    """Return run -> busbw [GB/s] at its largest message, of the better placement.

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


# Another measurement than that of the row, such as the minimum of its calls.
_STATISTIC = re.compile(
    r"(?:.{0,99}_)?(?:min|max|mean|median|p99\w{0,99}|average|peak|apart|both_ways|overall|pure)"
)


def bandwidth_tables(
    sizes: Mapping[str, str], records: RecordArrays
) -> tuple[list[BandwidthTable], set[str]]:
    """Return the tables of the logs, and the logs whose processes were not connected.

    `sizes` is what the job of each log is called by its size; empty if that is not known.
    """
    import numpy as np

    wanted = (records.metric.among(BANDWIDTHS) >= 0) & (records.message_size >= 0)
    names = set(sizes)
    apart = records.take(np.flatnonzero(records.variant.among(["apart"]) == 0))
    alone = set(filter(None, apart.run.texts())) & names
    values: dict[tuple[str, str, int], dict[str, dict[int, list[float]]]] = {}
    seen: dict[tuple[Any, ...], int] = {}
    several = _several_sizes(records.take(np.flatnonzero(wanted)))
    for record in records.take(np.flatnonzero(wanted)).records():
        size, variant = record.message_size or 0, record.variant
        if record.run not in names - alone or not record.value > 0 or _STATISTIC.fullmatch(variant):
            continue
        kind = "" if variant in PLACEMENTS else variant
        # A size that comes again begins another table; a single size is measured repeatedly.
        key = (record.run, record.rank, record.source, record.metric, variant, size)
        seen[key] = number = seen.get(key, 0) + 1
        number = number if several[record.run] else 1
        table = values.setdefault((record.run, kind, number), {})
        table.setdefault(record.metric, {}).setdefault(size, []).append(record.value)
    tables = dict.fromkeys(names, 0)
    for run, _, number in values:
        tables[run] = max(tables[run], number)
    lines = [
        BandwidthTable(
            run=run,
            name=" ".join(filter(None, (run, kind, f"table {number}" if tables[run] > 1 else ""))),
            size=sizes[run],
            values={metric: _best(metric, own, several[run]) for metric, own in table.items()},
        )
        for (run, kind, number), table in values.items()
    ]
    order = {run: place for place, run in enumerate(sizes)}
    return sorted(lines, key=lambda line: order[line.run]), alone


def _several_sizes(records: RecordArrays) -> dict[str, bool]:
    """Return whether each run has several message sizes."""
    import pandas as pd

    counts = pd.Series(records.message_size).groupby(records.run.codes).nunique()
    return {records.run.names[int(run)]: int(count) > 1 for run, count in counts.items()}


def _best(metric: str, found: dict[int, list[float]], several: bool) -> dict[int, float]:
    """Return the value of each size: of the better placement, or the mean of single trials."""
    if several:
        better = min if metric == "latency" else max
        return {size: better(found[size]) for size in sorted(found)}
    return {size: sum(own) / len(own) for size, own in found.items()}


class BandwidthTable(Value, frozen=True, kw_only=True):
    """One table of a log: metric -> values by message size; `size` is that of the job."""

    run: str
    name: str
    size: str
    values: dict[str, dict[int, float]]

    @property
    def metric(self) -> str:
        """The most important metric that the table states."""
        return next(name for name in BANDWIDTHS if name in self.values)

    @property
    def label(self) -> str:
        """The name of the log, and the size if it is known."""
        return f"{self.name}, {self.size}" if self.size else self.name
