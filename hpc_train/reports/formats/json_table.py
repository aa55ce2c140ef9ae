"""Report -> JSON, the contract for programs."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from hpc_train.model.report import Report

SCHEMA = 1


def render(report: Report) -> str:
    """Return `{"schema": 1, "name", "title", "partial", "rows", "runs", "notes", "checks", …}`.

    `rows` has one object per point, `runs` one per run, ok or not; numbers in the units that their
    names say, null where there is none, and never NaN. `provenance` has, by name, each value and
    the number of runs that have it.
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
    content |= {table.key: list(table.records) for table in report.tables if table.key}
    content |= {
        "summary": list(report.summary),
        "notes": list(report.notes),
        "checks": list(report.checks),
        "provenance": {
            fact.name: [{"value": text, "runs": runs} for text, runs in fact.values]
            for fact in report.provenance
        },
    }
    return json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
