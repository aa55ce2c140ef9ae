"""Run and point tables -> the report of a scaling study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.model.expected_study import INTERVALS, ExpectedStudy
from hpc_train.model.report import Report, ReportTable
from hpc_train.reports.fastest_series_table import fastest_notes, fastest_table
from hpc_train.reports.hardware_notes import hardware_notes
from hpc_train.reports.plain_rows import Row, plain_rows
from hpc_train.reports.point_and_series_names import (
    UNKNOWN,
    foreign,
    one_size,
    place,
    regimes,
    speedup_word,
)
from hpc_train.reports.scaling_summary import summary_lines
from hpc_train.reports.series_scaling_table import is_tabled, series_table
from hpc_train.reports.study_tables import LESS, ROOM, absent_notes, points_table, runs_table
from hpc_train.reports.value_format import level_word

if TYPE_CHECKING:
    import pandas as pd

STATE_UNKNOWN = (
    "Logs without a run folder do not contain the state of their job: a log with a result counts "
    "as ok unless it contains a failure (records contain none). The number of ranks is the printed "
    "world_size, otherwise that of the ranks that the log names. Logs with the same number of "
    "ranks are repetitions of one point; a log without a number is a point of its own."
)
PAIRED = "Student's t of the differences within the blocks of the nested study, on logarithms"
RATIOS = (
    "speedup = X(p)/X(p0) as a ratio of {means} over the runs, 1 at the baseline by "
    "definition; ideal = ratio of the numbers of GPUs (of ranks, if there are no GPUs); "
    "efficiency = speedup/ideal."
)
# Left out also where there is space, if they add no information.
NEVER_MISSED = ("nodes", "time_to_train_speedup", "common_speedup")
REPLICATE = (
    "Intervals: {confidence}, {interval}; the replicate is the run, not a step. Rows "
    "of one series are correlated: they share the noise of their baseline."
)


def scaling_report(
    study: ExpectedStudy,
    runs_frame: pd.DataFrame,
    points_frame: pd.DataFrame,
    fastest_frame: pd.DataFrame | None = None,
    *,
    columns: int | None = ROOM,
) -> Report:
    """Return the report of a study: summary, points, then every run without result.

    `fastest_frame` is the comparison of the series at each size. The table of points fits into
    `columns` characters if possible; None is the wide table, with every column.
    """
    points = plain_rows(points_frame)
    fastest = [] if fastest_frame is None else plain_rows(fastest_frame)
    compared = () if fastest_frame is None else (fastest_table(fastest, points),)
    confidence = float(points[0]["confidence"]) if points else 0.95
    wide, room = columns is None, columns or ROOM
    table, failed = points_table(points, confidence, wide=wide, room=room), runs_table(runs_frame)
    return Report(
        title=_title(study, points) + _partial(study),
        summary=summary_lines(study, runs_frame, points, fastest),
        tables=(table, *_of_series(study, points), *compared, failed),
        notes=(
            *_notes(study, runs_frame, points, confidence),
            *fastest_notes(fastest, confidence),
            *absent_notes(table, points),
            *_no_room(table, points),
        ),
        name=study.name,
        conditions=_conditions(study, points, confidence),
    )


def _of_series(study: ExpectedStudy, points: Sequence[Row]) -> Iterator[ReportTable]:
    if is_tabled(points):
        yield series_table(points, study.gates)


def _conditions(study: ExpectedStudy, points: Sequence[Row], confidence: float) -> dict[str, Any]:
    return {
        "regime": " and ".join(regimes(points)) or "unknown",
        "declared": study.scaling,
        "confidence": confidence,
        "interval": f"{interval_words(study, points)}; the replicate is the run",
        "bands": study.bands,
        "warmup_steps": study.warmup.steps,
        "warmup_seconds": study.warmup.seconds,
        "gate_efficiency": study.gates.efficiency,
    }


def _title(study: ExpectedStudy, points: Sequence[Row]) -> str:
    bases = " / ".join(dict.fromkeys(row["basis"] for row in points))
    if not bases:
        return study.name
    if one_size(points):
        where = place(points[0])
        return study.name if where == UNKNOWN else f"{study.name}: one size ({where})"
    kind = f"{' and '.join(regimes(points))} scaling".strip()
    return f"{study.name}: {kind}, {speedup_word(points)} by {bases}"


def _partial(study: ExpectedStudy) -> str:
    waiting = len(study.unfinished)
    return f" (partial: {waiting} of {len(study.runs)} runs not finished)" if waiting else ""


def _notes(
    study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row], confidence: float
) -> tuple[str, ...]:
    notes = [*study.notes]
    if foreign(study):
        notes.append(STATE_UNKNOWN)
    if any(row["speedup"] is not None and not row["is_baseline"] for row in points):
        means = "geometric means" if study.interval == "welch" else "mean times (1/X)"
        notes.append(RATIOS.format(means=means))
    if any(row["speedup_low"] is not None for row in points):
        level, words = f"{study.bands} {level_word(confidence)}", interval_words(study, points)
        notes.append(REPLICATE.format(confidence=level, interval=words))
    if any(row["step_time_s"] is not None and row["steps"] for row in points):
        notes.append(
            "step time = median over the steps of a run; the slowest rank counts in each step."
        )
    return (*notes, *hardware_notes(points, runs))


def interval_words(study: ExpectedStudy, points: Sequence[Row]) -> str:
    """Return the interval of the speedups in words; some of them may be of pairs."""
    paired = [row["is_paired"] for row in points if row["speedup_low"] is not None]
    if not any(paired):
        return INTERVALS[study.interval]
    if all(paired):
        return PAIRED
    return f"{PAIRED}, for {sum(paired)} of {len(paired)} points; else {INTERVALS[study.interval]}"


def _no_room(table: ReportTable, points: Sequence[Row]) -> Iterator[str]:
    shown = {column.key for column in table.columns}
    known = [key for key in LESS if any(row.get(key) is not None for row in points)]
    hidden = [key for key in known if key not in shown and key not in NEVER_MISSED]
    if hidden:
        yield (f"Columns that do not fit are in --wide, CSV and JSON: {', '.join(hidden)}.")
