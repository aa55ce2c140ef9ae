"""Plain rows -> caveats: one line for each kind of flag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.reports.words import size, under

Row = Mapping[str, Any]
Marks = list[tuple[Row, str]]
# Number of points named in a line; the table's column `flags` has all of them.
NAMED = 8
NOT_OK = "not every run is ok"
MEANING = {
    "n=1": "n=1, so no interval",
    "baseline n=1": "one baseline run, so no interval",
    "bootstrap": "no interval by resampling",
    "short": "few measured steps",
    "gate": "below the gate",
    "ranks": "ranks without steps",
    "superlinear": "more than ideal",
    "varies": "contradicting values in a run",
    "accuracy": "accuracy is not the baseline's",
    "loss": "loss is not the baseline's",
    "whole seconds": "times in whole seconds",
    "unmeasured": "ok runs without a value, not compared",
    "not finite": "values that are not finite",
    "requeued": "runs that were restarted",
}
SAID = frozenset({"n=1", "baseline n=1"})


def doubts(points: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each kind of flag with its points, and one for runs that are not ok."""
    kinds: dict[str, Marks] = {}
    for row in points:
        if row["not_ok"]:
            found = f"{row['n_ok']} of {row['n_submitted']}: {row['not_ok']}"
            kinds.setdefault(NOT_OK, []).append((row, found))
        for flag in row["flags"]:
            code, _, detail = flag.partition(": ")
            kinds.setdefault(code, []).append((row, "" if code in SAID else detail))
    for code, marks in kinds.items():
        yield f"Caveats: {MEANING.get(code, code)}{_points(marks, points)}."


def _points(marks: Marks, points: Sequence[Row]) -> str:
    details = dict.fromkeys(detail for _, detail in marks)
    rows = list({id(row): row for row, _ in marks}.values())
    if len(details) == 1:
        detail = next(iter(details))
        return f"{f' ({detail})' if detail else ''}: {_names(rows, points)}"
    parts = [f"{_name(row, points)} ({detail})" for row, detail in marks[:NAMED]]
    return ": " + "; ".join(parts) + _more(len(marks))


def _names(rows: Sequence[Row], points: Sequence[Row]) -> str:
    if len(rows) == len(points):
        return f"all {len(points)} points" if len(points) > 1 else "the only point"
    return ", ".join(_name(row, points) for row in rows[:NAMED]) + _more(len(rows))


def _name(row: Row, points: Sequence[Row]) -> str:
    return f"{size(row, points)}{under(row['series'])}"


def _more(count: int) -> str:
    return f" and {count - NAMED} more (column flags)" if count > NAMED else ""
