"""A table of points -> footnotes for missing values (`--`), with points and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.model.report import ReportTable
from hpc_train.reports.numbers import ABSENT
from hpc_train.reports.words import names

Row = Mapping[str, Any]
# Columns that may be empty.
COMPLETE_WITHOUT = frozenset({"flags", "transport", "series"})
COMPARED = frozenset({
    "speedup", "ideal", "efficiency", "doubling", "karp_flatt",
    "time_to_train_speedup", "time_to_train_efficiency",
})  # fmt: skip
NAMED = 8


def absent_notes(table: ReportTable, points: Sequence[Row]) -> Iterator[str]:
    """Yield a note per reason with the rows that have `--`."""
    if not any(cell.text == ABSENT for row in table.rows for cell in row):
        return
    reasons: dict[str, list[str]] = {}
    name = names(points)
    for row, cells in zip(points, table.rows, strict=True):
        empty = {
            column.key: column.heading.replace("\n", " ").partition(" [")[0]
            for column, cell in zip(table.columns, cells, strict=True)
            if cell.text == ABSENT and column.key not in COMPLETE_WITHOUT
        }
        for reason in _reasons(row, empty):
            reasons.setdefault(reason, []).append(name(row))
    for reason, rows in reasons.items():
        more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
        where = "every point" if len(rows) == len(points) > 1 else ", ".join(rows[:NAMED]) + more
        yield f"{ABSENT}: {where}: {reason}."


def _reasons(row: Row, empty: Mapping[str, str]) -> Iterator[str]:
    if not empty:
        return
    if not row["n_ok"]:
        yield f"no run with a result ({row['not_ok']})"
        return
    if COMPARED & empty.keys() and row["note"]:
        yield str(row["note"])
    later = {"doubling", "karp_flatt"} & empty.keys()
    if later and not row["note"] and not row["is_baseline"]:
        yield "doubling needs the point of half the size, Karp-Flatt a point above the baseline"
    other = [name for key, name in empty.items() if key not in COMPARED]
    if other:
        yield f"not recorded: {', '.join(other)}"
