"""Rows of a comparison of series -> its table, and the fastest series of each size in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hpc_train.base.metrics import BASES
from hpc_train.reports.point_and_series_names import series_heading, short_series, size_unit
from hpc_train.reports.report import Cell, Column, ReportTable
from hpc_train.reports.study_tables import follow_from_unit
from hpc_train.reports.value_format import (
    ABSENT,
    Row,
    level_word,
    levels_word,
    significant,
    whole,
    with_limits,
)

FASTER, NO_RESULT, ALONE = "faster", "no result", "no other series at this size"
ONE_RUN, NO_SPREAD = "n=1: no verdict", "no spread: no verdict"
SIGNIFICANT = {
    FASTER: "yes",
    "no difference seen at this n": "no",
    ONE_RUN: "n=1",
    NO_SPREAD: "no spread",
}
SIZES = {"nodes": "nodes", "gpus_per_node": "gpus/\nnode", "tasks_per_node": "tasks/\nnode",
         "gpus": "gpus", "ranks": "ranks"}  # fmt: skip
MOST_NAMED = 6
METHOD = (
    "Comparison at each size: ratio of the fastest series to another one, of geometric means over "
    "the runs, with Welch's interval at the level at which its row is decided, {levels} (Holm: "
    "{pairs} pairs of series are compared, because the fastest is known only from the data, and "
    "fewer after each decision; all decisions together hold at {confidence}). Series are compared "
    "if they agree in model, data and batch, as far as these are recorded."
)


def fastest_table(rows: Sequence[Row], points: Sequence[Row]) -> ReportTable:
    """Return a row for each size and each series that is compared with the fastest one there."""
    columns = _columns(rows, points)
    return ReportTable(
        title="Comparison at each size",
        columns=tuple(column for column, _ in columns),
        rows=tuple(
            tuple(Cell(text=text(row), value=row.get(column.key)) for column, text in columns)
            for row in rows
        ),
        key="comparison",
        records=tuple(map(ratio_record, rows)),
    )


def _columns(
    rows: Sequence[Row], points: Sequence[Row]
) -> list[tuple[Column, Callable[[Row], str]]]:
    axis = series_heading(points)
    unit = _unit(rows)
    confidence = float(points[0]["confidence"]) if points else 0.95
    return [
        *(
            (Column(key=key, heading=heading), _count(key))
            for key, heading in SIZES.items()
            if _is_needed(key, points)
        ),
        (
            Column(key="fastest", heading="fastest\nseries", align="left"),
            lambda row: short_series(row["fastest"], axis),
        ),
        (
            Column(key="value", heading=f"its\n{unit}", drop=2),
            lambda row: significant(row["value"]),
        ),
        (
            Column(key="series", heading="compared\nwith", align="left"),
            lambda row: short_series(row["series"], axis) if row["series"] else ABSENT,
        ),
        (
            Column(key="other_value", heading=f"its\n{unit}", drop=1),
            lambda row: significant(row["other_value"]),
        ),
        (
            Column(key="ratio", heading=f"times as fast\n[{levels_word(rows, confidence)}]"),
            lambda row: with_limits(row, "ratio", 3),
        ),
        (Column(key="verdict", heading="significant", align="left"), _significant),
    ]


def fastest_notes(rows: Sequence[Row], confidence: float) -> Iterator[str]:
    """Yield how the comparison at each size was computed."""
    pairs = next((row["comparisons"] for row in rows), 0)
    if pairs:
        levels = levels_word(rows, confidence)
        yield METHOD.format(levels=levels, confidence=level_word(confidence), pairs=pairs)


def together(named: Sequence[str]) -> str:
    """Return `1, 2 and 4 GPUs`, `1 GPU to 512 GPUs (10 sizes)`."""
    if len(named) > MOST_NAMED:
        return f"{len(named)} sizes from {named[0]} to {named[-1]}"
    if len(named) == 1:
        return named[0]
    words = [name.split(" ") for name in named]
    if all(len(word) == 2 and word[1].rstrip("s") == words[-1][1].rstrip("s") for word in words):
        numbers = [word[0] for word in words]
        return f"{', '.join(numbers[:-1])} and {numbers[-1]} {words[-1][1]}"
    return f"{'; '.join(named[:-1])} and {named[-1]}"


def _unit(rows: Sequence[Row]) -> str:
    units = {BASES[row["basis"]].in_heading for row in rows}
    return units.pop() if len(units) == 1 else "result"


def _is_needed(key: str, points: Sequence[Row]) -> bool:
    """Whether it is the unit of the report, or does not follow from that."""
    unit = size_unit(points).key
    if key in ("gpus", "ranks") or follow_from_unit(points):
        return key == unit
    return len({row[key] for row in points}) > 1


def _count(key: str) -> Callable[[Row], str]:
    return lambda row: whole(row[key])


def _significant(row: Row) -> str:
    verdict = str(row["verdict"])
    if verdict == NO_RESULT and row["not_ok"]:
        return f"{verdict} ({row['not_ok']})"
    return SIGNIFICANT.get(verdict, verdict)


def ratio_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row for JSON: the ratio with its limits as one value."""
    plain = {k: v for k, v in row.items() if k not in ("ratio_low", "ratio_high")}
    ends = {end: row[f"ratio_{end}"] for end in ("low", "high")}
    return plain | {"ratio": None if row["ratio"] is None else {"value": row["ratio"], **ends}}
