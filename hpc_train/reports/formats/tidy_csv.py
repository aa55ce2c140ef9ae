"""Report -> long CSV: one row per run and metric."""

from __future__ import annotations

import csv
import io

from hpc_train.model.report import Report
from hpc_train.reports.tidy import COLUMNS, tidy_rows


def render(report: Report) -> str:
    """Return every value of every run as CSV (RFC 4180), with unit and direction."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="")
    writer.writeheader()
    writer.writerows(tidy_rows(report.name, report.run_rows))
    return out.getvalue()
