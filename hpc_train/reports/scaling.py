"""Run and point tables -> the report of a scaling study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.report import Report
from hpc_train.reports.rows import plain_rows
from hpc_train.reports.summary import distinct_notes, place, speedup_word, summary_lines
from hpc_train.reports.tables import points_table, runs_table

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]


def scaling_report(
    study: ExpectedStudy, runs_frame: pd.DataFrame, points_frame: pd.DataFrame
) -> Report:
    """Return the report of a study: words first, then the points, then every run without result.

    `checks` lists each point below `study.gates.efficiency` or without any ok run; it is empty when
    the study passes.
    """
    runs, points = plain_rows(runs_frame), plain_rows(points_frame)
    confidence = float(points[0]["confidence"]) if points else 0.95
    failed = runs_table(runs)
    return Report(
        title=_title(study, points),
        summary=summary_lines(study, runs, points),
        tables=(points_table(points, confidence), failed),
        notes=_notes(study, points, confidence),
        checks=_checks(study, points),
        name=study.name,
        conditions={
            "regime": points[0]["regime"] if points else "unknown",
            "declared": study.scaling,
            "confidence": confidence,
            "interval": "Welch on logarithms; the replicate is the run",
            "warmup_steps": study.warmup.steps,
            "warmup_seconds": study.warmup.seconds,
            "gate_efficiency": study.gates.efficiency,
        },
    )


def _title(study: ExpectedStudy, points: Sequence[Row]) -> str:
    bases = " / ".join(dict.fromkeys(row["basis"] for row in points))
    regime = points[0]["regime"] if points else "unknown"
    kind = f"{regime} scaling" if regime != "unknown" else "scaling"
    return f"{study.name}: {kind}, {speedup_word(points)} by {bases}" if bases else study.name


def _notes(study: ExpectedStudy, points: Sequence[Row], confidence: float) -> tuple[str, ...]:
    return (
        f"Intervals: {confidence:.0%}, Welch on logarithms; the replicate is the run, not a step. "
        "The baseline is 1 by definition and has no interval; n=1 has none either.",
        "speedup = X(p)/X(p0) as a ratio of geometric means; ideal = ratio of GPUs (of ranks "
        "without GPUs); efficiency = speedup/ideal; step = median over steps of the slowest rank.",
        *study.notes,
        *distinct_notes(points),
    )


def _checks(study: ExpectedStudy, points: Sequence[Row]) -> tuple[str, ...]:
    gate = study.gates.efficiency
    checks = []
    for row in points:
        where = f"{row['series']}, {place(row)}"
        if not row["n_ok"]:
            checks.append(f"missing point: {where}: {row['not_ok']}")
        elif gate is not None and row["efficiency"] is None:
            checks.append(f"gate not decided: {where}: no efficiency")
        elif gate is not None and row["efficiency"] < gate:
            checks.append(f"gate not met: {where}: efficiency {row['efficiency']:.3f} < {gate:g}")
    return tuple(checks)
