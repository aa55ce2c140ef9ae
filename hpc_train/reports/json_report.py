"""Report -> JSON, the contract for programs."""

from typing import Any

import msgspec

from hpc_train.reports.report import Report

SCHEMA = 1


def render(report: Report) -> str:
    """Return `{"schema": 1, "name", "title", "partial", "rows", "runs", "notes", "checks", …}`.

    `rows` has one object per point, `runs` one per run, ok or not; numbers are in the units in
    their names, left out if missing, and never NaN. `provenance` has, by name, each value and the
    number of runs that have it.
    """
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": report.name,
        "title": report.title,
        "partial": report.partial,
        "conditions": report.conditions,
        "rows": [],
        "runs": [],
    }
    # Of the columns of a study most are empty: a run states what it measured.
    content |= {
        table.key: [{k: v for k, v in row.items() if v is not None} for row in table.records]
        for table in report.tables
        if table.key
    }
    content |= {
        "summary": list(report.summary),
        "notes": list(report.notes),
        "checks": list(report.checks),
        "provenance": {
            fact.name: [{"value": text, "runs": runs} for text, runs in fact.values]
            for fact in report.provenance
        },
    }
    # NaN and infinite numbers become null.
    return (
        msgspec.json.format(msgspec.json.encode(content, enc_hook=_plain_value), indent=2).decode()
        + "\n"
    )


def _plain_value(value: Any) -> Any:
    """Convert a number of a library to a Python number, and anything else to text."""
    return value.item() if hasattr(value, "item") else str(value)
