"""Rows of a target -> their table and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hpc_train.model.report import Cell, Column, Report, ReportTable
from hpc_train.model.report_options import Target
from hpc_train.model.study import ALONE
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.study_tables import before_runs
from hpc_train.reports.value_format import ABSENT, fixed, significant, whole

COLUMNS = (
    Column(key="series", heading="series", align="left"),
    Column(key="nodes", heading="nodes", drop=2),
    Column(key="ranks", heading="ranks"),
    Column(key="global_batch", heading="batch", drop=3),
    Column(key="n_reached", heading="reached\n/n"),
    Column(key="samples_to_target", heading="samples to\ntarget", drop=4),
    Column(key="time_to_target_s", heading="time to\ntarget [s]\nwith\nstart-up"),
    Column(
        key="time_to_target_without_startup_s",
        heading="time to\ntarget [s]\nwithout\nstart-up",
        drop=2,
    ),
    Column(key="startup_s", heading="start-up\n[s]", drop=1),
    Column(key="statistical_efficiency", heading="statistical\nefficiency [%] [95 %]"),
)
NOTE = (
    "Time to {target}: until the first evaluation that reaches it; validation values are "
    "preferred. Evaluations without a step number are assumed to be evenly spaced. A run that "
    "did not reach the target has no time, which is not extrapolated. Without start-up, time = "
    "samples/throughput; with start-up, it includes what the warm-up (initialisation, compilation, "
    "first steps) took beyond its usual steps, and is -- where that was not recorded. Both include "
    "evaluations if the throughput does. A run without a throughput has its share of the time to "
    "train, with start-up. With three or four runs the time is their mean; with more, the mean "
    "without the best and the worst one, and one run may fail (MLPerf). "
    "Statistical efficiency = samples to target at the baseline / at the point."
)


def with_target(report: Report, rows: Sequence[dict[str, Any]], target: Target) -> Report:
    """Return the report with a table of samples and time to the target of each point."""
    skip = 1 if {row["series"] for row in rows} <= {ALONE} else 0
    table = ReportTable(
        title=f"Time to {target}",
        columns=COLUMNS[skip:],
        rows=tuple(tuple(Cell(text=text) for text in _texts(row)[skip:]) for row in rows),
        key="target",
        records=tuple(rows),
    )
    notes = (*report.notes, NOTE.format(target=target), *_lacking(rows, target))
    asked = {"target": str(target)}
    return msgspec.structs.replace(
        report,
        tables=before_runs(report, (table,)),
        notes=notes,
        conditions={**report.conditions, **asked},
    )


def _texts(row: Row) -> tuple[str, ...]:
    state = "" if row["state"] == "reached" else row["state"]
    return (
        row["series"],
        whole(row["nodes"]),
        whole(row["ranks"]),
        whole(row["global_batch"]),
        f"{row['n_reached']}/{row['n_ok']}",
        state or significant(row["samples_to_target"]),
        _time(row, "time_to_target_s") or state or ABSENT,
        _time(row, "time_to_target_without_startup_s") or state or ABSENT,
        significant(row["startup_s"]),
        _ratio(row["statistical_efficiency"]),
    )


def _time(row: Row, key: str) -> str:
    return "" if row[key] is None else significant(row[key])


def _ratio(found: Mapping[str, float | None] | None) -> str:
    if found is None:
        return ABSENT
    value, low, high = (fixed(found[end], 0, 100) for end in ("value", "low", "high"))
    return value if ABSENT in (low, high) else f"{value} [{low}, {high}]"


def _lacking(rows: Sequence[Row], target: Target) -> tuple[str, ...]:
    every = [run for row in rows for run in row["runs"]]
    unknown = [run["run_id"] for run in every if run["state"] == "not measured"]
    if not unknown:
        return ()
    more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return (
        f"not measured: {unknown[0]}{more} did not print {target.metric} and the global batch; "
        "print an event with step and global_batch_size (hpctrain help events).",
    )
