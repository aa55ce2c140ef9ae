"""A table of a test -> the inputs, the points and the values of its report."""

import json
from pathlib import Path
from typing import Any

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import ReportInputs, report_inputs
from hpc_train.reports.write_report import render_report
from hpc_train.scaling.record_arrays import records_in


def read(folder: Path, text: str | bytes, **search: Any) -> ReportInputs:
    path = folder / "table.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return report_inputs([str(path)], Search(root=folder / "none", **search))


def rows(found: ReportInputs) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = json.loads(render_report(build_report(found), "json"))["rows"]
    return points


def values(found: ReportInputs, metric: str) -> list[float]:
    return [record.value for record in records_in(found.records) if record.metric == metric]
