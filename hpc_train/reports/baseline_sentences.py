"""Plain rows -> the baselines of a summary, in absolute numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.metrics import BASES, BASIS_COLUMNS
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import has_own_baselines, one_size, sizes, under
from hpc_train.reports.value_format import significant


def baselines(points: Sequence[Row]) -> Iterator[str]:
    """Yield each series' baseline in absolute numbers."""
    one, named = one_size(points), sizes(points)
    for row in points:
        if (row["is_baseline"] or one) and (number := speed(row)):
            what = "Result" if one else "Baseline"
            yield f"{what}{under(row['series'])}: {named(row)}, {number} (n={row['n_ok']})."


def common_baselines(points: Sequence[Row]) -> Iterator[str]:
    """Yield the baselines that several series share, unless each is its series' only one."""
    named = sizes(points)
    for row in points if has_own_baselines(points) else ():
        if row["is_common_baseline"]:
            where = f"{named(row)}{under(row['series'])}"
            yield f"Baseline common to all comparable series: {where}, the fastest of that size."


def speed(row: Row) -> str:
    """Return `2240 samples/s, 56.35 ms a step`: the basis, and the step time if there is one."""
    value, unit = row[BASIS_COLUMNS[row["basis"]]], BASES[row["basis"]].in_sentence
    numbers = [f"{significant(value)} {unit}"] if value is not None else []
    if row["basis"] == "throughput" and row["step_time_s"] is not None:
        numbers.append(f"{significant(row['step_time_s'] * 1e3)} ms a step")
    return ", ".join(numbers)
