"""Report -> CSV of its first table, one tidy row per point."""

from __future__ import annotations

import csv
import io
from typing import Any

from hpc_train.model.report import Report, ReportTable
from hpc_train.reports.numbers import rounded


def render(report: Report) -> str:
    """Return the first table as CSV (RFC 4180): every column, absent values empty.

    A ratio is three columns: `speedup`, `speedup_low`, `speedup_high`. Numbers have nine digits.
    Texts are written unchanged: a spreadsheet may interpret one that begins with `=`, `+`, `-` or
    `@` as a formula; import such a file as text.
    """
    return table_text(report.tables[0]) if report.tables else ""


def table_text(table: ReportTable) -> str:
    """Return one table as CSV, its columns in the order of the rows' keys."""
    rows = [{name: rounded(value) for name, value in _flat(row).items()} for row in _records(table)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _records(table: ReportTable) -> list[dict[str, Any]]:
    if table.records:
        return list(table.records)
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, (c.value for c in row), strict=True)) for row in table.rows]


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat[name] = value.get("value")
            flat[f"{name}_low"], flat[f"{name}_high"] = value.get("low"), value.get("high")
        elif isinstance(value, (list, tuple)):
            flat[name] = "; ".join(str(part) for part in value)
        else:
            flat[name] = value
    return flat
