"""Rows of a comparison -> its tables: the points, what differs, the runs without a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.base.metrics import BASES
from hpc_train.reports.fastest_series_table import ratio_record
from hpc_train.reports.point_and_series_names import series_heading, short_series
from hpc_train.reports.point_columns import PointColumn
from hpc_train.reports.report import Cell, Column, ReportTable
from hpc_train.reports.value_format import (
    ABSENT,
    Row,
    for_programs,
    levels_word,
    plain_rows,
    significant,
    whole,
    with_limits,
)

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.scaling.caveats import ApartPoints

OK = "COMPLETED"
SIZES = ("nodes", "gpus_per_node", "tasks_per_node")


class ComparisonInput(NamedTuple):
    """Data of a report on two sides.

    `settings`: name, values of A, values of B of the settings that differ; `side_points`: the
    points of each side as in its report, with their flags; `apart`: the points whose two sides
    have no common node; `of_sites`: the names of settings that a site gives to a job.
    """

    names: tuple[str, str]
    points: pd.DataFrame
    runs: tuple[pd.DataFrame, pd.DataFrame]
    settings: Sequence[tuple[str, str, str]]
    notes: tuple[str, ...] = ()
    confidence: float = 0.95
    min_effect: float | None = None
    allow_mixed: tuple[str, ...] = ()
    side_points: tuple[Sequence[Row], Sequence[Row]] = ((), ())
    apart: tuple[ApartPoints, ...] = ()
    of_sites: tuple[str, ...] = ()


def points_table(points: Sequence[Row], found: ComparisonInput) -> ReportTable:
    """Return a row per point."""
    shown = [item for item in _columns(points, found) if _is_needed(item, points)]
    return ReportTable(
        title="Points",
        columns=tuple(item.column for item in shown),
        rows=tuple(
            tuple(Cell(text=c.text(row), value=row.get(c.column.key)) for c in shown)
            for row in points
        ),
        key="rows",
        records=tuple(map(ratio_record, points)),
    )


def _columns(points: Sequence[Row], found: ComparisonInput) -> list[PointColumn]:
    bases = {BASES[row["basis"]].in_heading for row in points}
    unit = f"\n{bases.pop()}" if len(bases) == 1 else ""
    axis = series_heading(points)
    sizes = (("nodes", "nodes"), ("gpus_per_node", "gpus/\nnode"),
             ("tasks_per_node", "tasks/\nnode"), ("ranks", "ranks"))  # fmt: skip
    return [
        PointColumn(
            Column(key="series", heading=axis or "series", align="left"),
            lambda row: short_series(row["series"], axis),
        ),
        *(PointColumn(Column(key=key, heading=heading), _count(key)) for key, heading in sizes),
        PointColumn(
            Column(key="n", heading="ok\nA, B"), lambda row: f"{_ok(row, 'a')}, {_ok(row, 'b')}"
        ),
        PointColumn(Column(key="a", heading=f"A{unit}", drop=4), lambda row: significant(row["a"])),
        PointColumn(Column(key="b", heading=f"B{unit}", drop=3), lambda row: significant(row["b"])),
        PointColumn(
            Column(key="ratio", heading=f"B/A\n[{levels_word(points, found.confidence)}]"),
            lambda row: with_limits(row, "ratio", 3),
        ),
        PointColumn(
            Column(key="accuracy_change_pp", heading="accuracy\nchange", drop=2), _accuracy
        ),
        PointColumn(Column(key="verdict", heading="verdict", align="left"), _verdict),
    ]


def _is_needed(item: PointColumn, points: Sequence[Row]) -> bool:
    column = item.column
    values = {item.text(row) for row in points}
    if column.key == "ranks" and any(len({row[k] for row in points}) > 1 for k in SIZES):
        return False
    if column.key in ("series", *SIZES[1:], "ranks"):
        return len(values) > 1
    return column.key != "accuracy_change_pp" or values != {ABSENT}


def _count(key: str) -> Callable[[Row], str]:
    return lambda row: whole(row[key])


def _ok(row: Row, side: str) -> str:
    done, asked = row[f"n_{side}"], row[f"submitted_{side}"]
    return f"{done}" if done == asked else f"{done}/{asked}"


def _accuracy(row: Row) -> str:
    change = row["accuracy_change_pp"]
    return ABSENT if change is None else f"{change:+.2f}"


def _verdict(row: Row) -> str:
    """Return a short form of the verdict; the summary has the full form."""
    return "no difference" if row["verdict"].startswith("no diff") else str(row["verdict"])


def differences_table(found: ComparisonInput) -> ReportTable:
    """Return a row per setting that differs between the sides."""
    keys = ("setting", "a", "b")
    heads = ("setting", "A", "B")
    return ReportTable(
        title="Settings that differ",
        columns=tuple(
            Column(key=key, heading=head, align="left", prose=key != "setting")
            for key, head in zip(keys, heads, strict=True)
        ),
        rows=tuple(tuple(Cell(text=t, value=t) for t in row) for row in found.settings),
        key="differences",
        records=tuple(dict(zip(keys, row, strict=True)) for row in found.settings),
    )


def runs_table(found: ComparisonInput) -> ReportTable:
    """Return the runs that are not ok; `records` holds every run of both sides."""
    names = ("side", "run_id", "state", "problem")
    rows = [
        {"side": side, **for_programs(row)}
        for side, runs in zip("AB", found.runs, strict=True)
        for row in plain_rows(runs)
    ]
    return ReportTable(
        title="Runs without a result",
        columns=tuple(
            Column(key=name, heading=name, align="left", prose=name == "problem") for name in names
        ),
        rows=tuple(
            tuple(Cell(text=str(row[name] or ABSENT), value=row[name]) for name in names)
            for row in rows
            if row["state"] != OK
        ),
        key="runs",
        records=tuple(rows),
    )
