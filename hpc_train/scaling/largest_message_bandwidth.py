"""Measured bandwidths -> tables by message size, and the busbw of the largest messages.

GB/s are 1e9 B/s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpc_train.base.values import Value

# What a benchmark of a network states, the most important first.
BANDWIDTHS = ("busbw", "algbw", "latency")

if TYPE_CHECKING:
    import pandas as pd

PLACEMENTS = ("out_of_place", "in_place", "")


def largest_busbw(fields: pd.DataFrame) -> dict[str, float]:
    """Return run -> busbw [GB/s] at its largest message, of the better placement.

    busbw as NVIDIA's nccl-tests define it (doc/PERFORMANCE.md): algbw times the factor of the
    collective, 2(n-1)/n for all-reduce.
    """
    own = fields[(fields["metric"] == "busbw") & fields["variant"].isin(PLACEMENTS)]
    own = own[own["message_size"].notna() & (own["value"] > 0)]
    best = own.sort_values(["message_size", "value"]).groupby("run", observed=True)["value"].last()
    return {str(run): float(value) for run, value in sorted(best.items(), key=str)}


# Another measurement than that of the row, such as the minimum of its calls.
_STATISTIC = re.compile(
    r"(?:.{0,99}_)?(?:min|max|mean|median|p99\w{0,99}|average|peak|apart|both_ways|overall|pure)"
)


def bandwidth_tables(
    sizes: Mapping[str, str], records: pd.DataFrame
) -> tuple[list[BandwidthTable], set[str]]:
    """Return the tables of the logs, and the logs whose processes were not connected.

    `sizes` is what the job of each log is called by its size; empty if that is not known.
    """
    # Pandas is not needed to read a table of bandwidths.
    from hpc_train.scaling.record_arrays import records_in

    names = set(sizes)
    alone = set(records["run"][records["variant"] == "apart"]) & names
    wanted = records[records["metric"].isin(BANDWIDTHS) & records["message_size"].notna()]
    counts = wanted.groupby("run", observed=True)["message_size"].nunique()
    several = {str(run): bool(count > 1) for run, count in counts.items()}
    values: dict[tuple[str, str, int], dict[str, dict[int, list[float]]]] = {}
    seen: dict[tuple[Any, ...], int] = {}
    for record in records_in(wanted):
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
