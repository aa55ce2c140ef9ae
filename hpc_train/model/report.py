"""Report: title, tables, figures and notes, before any format."""

from __future__ import annotations

from typing import Any, Literal

from hpc_train.model.value import Value


class Column(Value, frozen=True, kw_only=True):
    """A column of a report's table: its key in CSV and JSON, its heading, how it is aligned."""

    key: str
    heading: str
    align: Literal["left", "right"] = "right"


class Cell(Value, frozen=True, kw_only=True):
    """What is shown, and the value behind it (a number, text, None, or value/low/high)."""

    text: str
    value: Any = None


class ReportTable(Value, frozen=True, kw_only=True):
    """Rows in order; each row has one cell per column.

    `records` is the same table for programs: every row and column, also those that are not shown;
    `key` is its name in JSON (`rows`, `runs`).
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    key: str = ""
    records: tuple[dict[str, Any], ...] = ()


class Figure(Value, frozen=True, kw_only=True):
    """A drawn figure: file stem, caption, and its bytes by format (`png`, `svg`)."""

    name: str
    caption: str
    images: dict[str, bytes]


class Report(Value, frozen=True, kw_only=True):
    """Everything that a reader is shown, in order; `summary` comes first, in words.

    `name` and `conditions` (regime, warm-up, confidence, ...) are what programs read instead of the
    title and the summary.
    """

    title: str
    summary: tuple[str, ...]
    tables: tuple[ReportTable, ...]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    name: str = ""
    conditions: dict[str, Any] = {}

    @property
    def run_rows(self) -> tuple[dict[str, Any], ...]:
        """Every run that was expected, with its `state` and `problem`."""
        return tuple(row for table in self.tables if table.key == "runs" for row in table.records)
