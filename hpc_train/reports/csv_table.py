"""Report -> CSV of its first table, or long CSV with a row for each run and metric."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hpc_train.base.metrics import RUN_METRICS
from hpc_train.reports.report import Report, ReportTable, Row, rounded

_METRICS = {metric.key: metric for metric in RUN_METRICS if metric.name}
_PLACE = (
    "study", "series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "run_id", "repetition",
    "state",
)  # fmt: skip
TIDY_COLUMNS = (*_PLACE, "metric", "value", "unit", "better", "problem")


def render(report: Report) -> str:
    """Return the first table as CSV (RFC 4180): every column, absent values empty.

    A ratio is three columns: `speedup`, `speedup_low`, `speedup_high`. Numbers have nine digits.
    Texts are written unchanged: a spreadsheet may interpret one that begins with `=`, `+`, `-` or
    `@` as a formula; import such a file as text.
    """
    return table_text(report.tables[0]) if report.tables else ""


def table_text(table: ReportTable) -> str:
    """Return one table as CSV, its columns in the order of the rows' keys."""
    flat = flat_rows(table)
    rows = [{name: rounded(value) for name, value in row.items()} for row in flat]
    return _written(list(dict.fromkeys(name for row in rows for name in row)), rows)


def _written(names: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def flat_rows(table: ReportTable) -> list[dict[str, Any]]:
    """Return the rows as `flat_row` does, without one empty value in place of absent bounds."""
    bounds = {name for row in table.records for name, v in row.items() if _has_parts(v)}
    flat = map(flat_row, table.records)
    return [{name: row[name] for name in row if name not in bounds} for row in flat]


def flat_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose values are numbers or text: `speedup`, `speedup_low`, `speedup_high`.

    Bounds without a value are two columns, `step_s_low` and `step_s_high`.
    """
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if _has_parts(value):
            flat |= {f"{name}_{key}": part for key, part in flat_row(value).items()}
        elif isinstance(value, dict):
            flat[name] = value["value"]
            flat[f"{name}_low"], flat[f"{name}_high"] = value.get("low"), value.get("high")
        elif isinstance(value, (list, tuple)):
            flat[name] = "; ".join(str(part) for part in value)
        else:
            flat[name] = value
    return flat


def _has_parts(value: object) -> bool:
    return isinstance(value, dict) and "value" not in value


def render_tidy(report: Report) -> str:
    """Return every value of every run as CSV (RFC 4180), with unit and direction."""
    return _written(TIDY_COLUMNS, tidy_rows(report.name, report.run_rows))


def tidy_rows(study: str, runs: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield a row per run and metric; a run without any value has one row, with its problem."""
    for run in runs:
        place = {"study": study} | {name: run.get(name) for name in _PLACE[1:]}
        known = {key: run[key] for key in _METRICS if run.get(key) is not None}
        for key, value in known.items():
            metric = _METRICS[key]
            yield {**place, "metric": metric.name, "value": value, "unit": metric.unit,
                   "better": metric.direction, "problem": run["problem"]}  # fmt: skip
        if not known:
            nothing = dict.fromkeys(("metric", "value", "unit", "better"))
            yield {**place, **nothing, "problem": run["problem"]}
