"""Report: title, tables, figures and notes, before any format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from hpc_train.base.values import Value
from hpc_train.reports.words import ABSENT

# The state of a run with a result.
OK = "COMPLETED"

# How lines of the summary begin that are not the answer.
CAVEATS, MEASURED, NOT_KNOWN = "Caveats: ", "Measured: ", "Not known: "


class Column(Value, frozen=True):
    """A column of a report's table: key in CSV and JSON, heading, alignment.

    Where a table is too wide, columns with `drop` above 0 are left out, the lowest first; cells of
    `prose` are wrapped before that, other cells after it.
    """

    key: str
    heading: str
    align: Literal["left", "right"] = "right"
    drop: int = 0
    prose: bool = False


class ReportTable(Value, frozen=True, kw_only=True):
    """Rows in order; each row has one text per column.

    `records` is the same table for JSON and CSV: every row and column, including those not shown;
    `key` is its name in JSON (`rows`, `runs`).
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    key: str = ""
    records: Sequence[dict[str, Any]] = ()


# A column, and the text of a row in it.
Shown = tuple[Column, Callable[[Any], str]]


def table_of(
    title: str,
    key: str,
    columns: Sequence[Shown],
    rows: Sequence[Any],
    records: Sequence[dict[str, Any]] | None = None,
) -> ReportTable:
    """Return a table of columns with the text of each row; `records` are the rows if not given."""
    return ReportTable(
        title=title,
        columns=tuple(column for column, _ in columns),
        rows=tuple(tuple(text(row) for _, text in columns) for row in rows),
        key=key,
        records=tuple(map(dict, rows)) if records is None else records,
    )


def column_of(key: str, heading: str, text: Callable[[Any], str] = str, **layout: Any) -> Shown:
    """Return a column whose cells are the `text` of the value that a row has by its key."""
    return Column(key, heading, **layout), lambda row: text(row[key])


def words_of(headings: Mapping[str, str], prose: Collection[str] = ()) -> list[Shown]:
    """Return columns of texts by their keys, with their headings; those of `prose` are wrapped."""
    return [
        column_of(
            key, heading, lambda value: str(value or ABSENT), align="left", prose=key in prose
        )
        for key, heading in headings.items()
    ]


class Figure(Value, frozen=True, kw_only=True):
    """A drawn figure: file stem, caption, its bytes by format, and the numbers that it shows.

    Formats are `png`, `svg` and `pdf`. `data` has one row for each thing drawn; it is written
    beside the figure.
    """

    name: str
    caption: str
    images: dict[str, bytes]
    data: ReportTable | None = None


class Fact(Value, frozen=True, kw_only=True):
    """One line of provenance: its name, and each value with the number of runs that have it."""

    name: str
    values: tuple[tuple[str, int], ...]


class Report(Value, frozen=True, kw_only=True):
    """The contents of a report, in order; `summary` comes first.

    `name` and `conditions` (regime, warm-up, confidence, ...) are the machine-readable form of the
    title and the summary. `partial`: some runs are not finished. `provenance`: where and with which
    software the runs ran; `diagnoses`: why each failed run failed. `kind` and `all_met` are words
    of the page: what it is, and that no check failed. Without `of_runs` it has no provenance, as it
    is about other reports.
    """

    title: str
    summary: tuple[str, ...]
    tables: tuple[ReportTable, ...]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    name: str = ""
    conditions: dict[str, Any] = {}
    partial: bool = False
    provenance: tuple[Fact, ...] = ()
    diagnoses: dict[str, str] = {}
    kind: str = "Scaling report"
    all_met: str = "Each point has a result, and each gate that was set is met."
    of_runs: bool = True

    @property
    def answer(self) -> tuple[str, ...]:
        """The lines of the summary that answer; the others say what they rest on."""
        starts = (CAVEATS, MEASURED, NOT_KNOWN)
        return tuple(line for line in self.summary if not line.startswith(starts))

    def said(self, start: str) -> tuple[str, ...]:
        """Return the lines of the summary that begin with `Caveats: `, ..., without that."""
        return tuple(
            line[len(start)].upper() + line[len(start) + 1 :]
            for line in self.summary
            if line.startswith(start)
        )

    def extended(self, tables: Sequence[ReportTable], notes: Sequence[str]) -> Report:
        """Return the report with more tables before that of the runs, and with more notes."""
        keys = [table.key for table in self.tables]
        place = keys.index("runs") if "runs" in keys else len(keys)
        every = (*self.tables[:place], *tables, *self.tables[place:])
        return msgspec.structs.replace(self, tables=every, notes=(*self.notes, *notes))

    @property
    def run_rows(self) -> tuple[dict[str, Any], ...]:
        """Every run that was expected, with its `state` and `problem`."""
        return tuple(row for table in self.tables if table.key == "runs" for row in table.records)


# `error`: the gate itself could not be read.
GateOutcome = Literal["met", "not met", "not decided", "error"]


class GateResult(Value, frozen=True, kw_only=True):
    """The result of one gate at one point, for one run, or for a whole series.

    `reason` is a text with the value, its interval and the limit; `low` and `high` are None if
    there is no interval, `value` is None if there is no number.
    """

    gate: str
    where: str
    outcome: GateOutcome
    reason: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
