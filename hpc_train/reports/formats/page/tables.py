"""Tables of a report -> data for the page's template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from hpc_train.model.report import Fact, ReportTable
from hpc_train.model.study import ALONE
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import counted, series_heading, short_series
from hpc_train.reports.value_format import ABSENT, significant, whole

# A longer list of values is folded, and not printed.
MOST_VALUES = 20


class Grid(NamedTuple):
    """A table: name, headings, columns of numbers, and the texts of its rows.

    `left_out` is the number of rows that are left out because there are too many; `prose` are the
    columns of sentences.
    """

    label: str
    heads: Sequence[str]
    right: Sequence[int]
    rows: Sequence[Sequence[str]]
    left_out: int = 0
    prose: Sequence[int] = ()


class LongFact(NamedTuple):
    """A fact with a value of its own for each of many runs: its title, and the values."""

    title: str
    values: Sequence[str]


def grid(table: ReportTable, most: int | None = None) -> Grid:
    """Return a table of the report, or its first `most` rows."""
    return Grid(
        label=table.title,
        heads=[column.heading for column in table.columns],
        right=[i for i, c in enumerate(table.columns, start=1) if c.align == "right"],
        rows=[[cell.text for cell in row] for row in table.rows[:most]],
        left_out=len(table.rows) - len(table.rows[:most]),
        prose=[i for i, c in enumerate(table.columns, start=1) if c.prose],
    )


def every_column(table: ReportTable) -> Grid:
    """Return all columns, transposed: one line per quantity, one column per row."""
    names = dict.fromkeys(name for row in table.records for name in row)
    filled = [n for n in names if any(row.get(n) not in (None, "", []) for row in table.records)]
    axis = series_heading(table.records) if "series" in names else ""
    heads = ["quantity", *("\n".join(point_words(row, axis)) for row in table.records)]
    return Grid(
        label=f"{table.title}, every column",
        heads=heads,
        right=range(2, len(heads) + 1),
        rows=[
            [_words(name), *(text_of(row.get(name)) for row in table.records)] for name in filled
        ],
    )


def facts_grid(facts: Iterable[Fact], expected: int) -> Grid:
    """Return provenance: each name with its values and, if they vary, numbers of runs."""
    rows = []
    for fact in facts:
        alone = len(fact.values) == 1 and fact.values[0][1] == expected
        shown = [v if alone else f"{v} ({counted(n, 'run')})" for v, n in fact.values]
        if len(shown) > MOST_VALUES:
            shown = [f"{len(shown):,}, listed below"]
        rows.append([fact.name, "; ".join(shown) or ABSENT])
    return Grid("Provenance", ("fact", "value"), (), rows, prose=(2,))


def long_facts(facts: Iterable[Fact]) -> list[LongFact]:
    """Return the facts that would fill pages of the table: a log of each of 1,000 runs."""
    return [
        LongFact(f"{fact.name}: {len(fact.values):,}", [value for value, _ in fact.values])
        for fact in facts
        if len(fact.values) > MOST_VALUES
    ]


def text_of(value: Any) -> str:
    """Return a value of a JSON row as text."""
    if isinstance(value, Mapping):
        limits = [value.get("low"), value.get("high")]
        shown = significant(value.get("value"))
        return shown if None in limits else f"{shown} [{', '.join(map(significant, limits))}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and isfinite(value):
        return whole(value) if value.is_integer() and abs(value) < 1e6 else significant(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) or ABSENT
    return ABSENT if value in (None, "") else str(value)


def _words(name: str) -> str:
    """Return `step time [s]` for `step_time_s`, `step time low [s]` for `step_time_s_low`."""
    words = name.split("_")
    unit = " [s]" if "s" in words else ""
    return " ".join(word for word in words if word != "s") + unit


def point_words(row: Row, axis: str) -> list[str]:
    """Return `srun`, `2 nodes`, `8 ranks`: the point that a row or a run belongs to."""
    alone = row.get("series") in (None, "", ALONE)
    parts = [] if alone else [short_series(str(row["series"]), axis)]
    parts += [counted(row[name], name[:-1]) for name in ("nodes", "ranks") if row.get(name)]
    return parts or [ABSENT]
