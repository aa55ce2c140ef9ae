"""Advice -> the report with a row for each strategy and size, sources, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpc_train.advice.advice import Advice, AdviceRow, MeasuredStep
from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize
from hpc_train.base.quantities import (
    BYTES,
    NUMBER,
    TIME,
    Range,
    Units,
    hours_of,
    quantity_text,
    range_text,
)
from hpc_train.reports.report import Column, Report, ReportTable, Shown, table_of
from hpc_train.reports.value_format import ABSENT

_GIB = 2.0**30
_WORDS = {"yes": "yes", "no": "no", "perhaps": "perhaps", "unknown": ABSENT}
FORECASTS = (
    "forecast: the last slope of the measured sizes, continued; its band is that with each point "
    "left out once, and 8 % further for each doubling."
)
NOTES = (
    "A bound without an upper end is written with >=. Without a measured step there is no upper "
    "bound of the time: a formula alone says only what is impossible.",
    "step: max(compute, communication) <= T <= compute + communication; compute is the measured "
    "step in proportion to the samples of a rank, or the operations over the peak (lower bound).",
    "memory: parameters, gradients and state of the optimiser, gathered parameters, buckets, "
    "activations, logits, and the context of CUDA and NCCL; kinds are in JSON.",
)


def advice_report(
    advice: Advice,
    program: ProgramSize,
    machine: MachineSize,
    measured: Sequence[MeasuredStep] = (),
    unused: Sequence[str] = (),
) -> Report:
    """Return the report; JSON has `rows` with bounds as {"low", "high"} and memory by kind.

    `unused` are notes on results that were not used.
    """
    each = machine.gpus_per_node
    gpu = f"{each} {machine.gpu or 'GPUs'} a node" if each else "no GPUs"
    notes = [*unused, *NOTES]
    if advice.refused:
        notes.append(f"Without a row: {'; '.join(reason for _, reason in advice.refused)}.")
    if any(row.forecast for row in advice.rows):
        notes.append(FORECASTS)
    notes += [f"Without a forecast: {text}." for text in advice.not_forecast]
    notes += [f"Missing: {text}." for text in advice.missing]
    return Report(
        title=f"{program.name} on {machine.site}, {machine.partition} ({gpu})",
        summary=(advice.one_rank, advice.recommended, advice.limit),
        tables=(_rows(advice.rows, machine), _known_values(program, machine, measured)),
        notes=tuple(notes),
        name=program.name,
        kind="Advice",
        all_met="",
        of_runs=False,
    )


def _rows(rows: Sequence[AdviceRow], machine: MachineSize) -> ReportTable:
    unit = "GPU" if machine.gpus_per_node else "rank"
    columns: list[Shown] = [
        (Column("strategy", "strategy", "left"), lambda row: row.strategy),
        (Column("ranks", f"{unit}s"), lambda row: str(row.ranks)),
        (Column("nodes", "nodes", drop=1), lambda row: str(row.nodes)),
        (Column("memory", f"memory\n[GiB/{unit}]"), _memory),
        (Column("fits", "fits", "left", drop=5), lambda row: _WORDS[row.fits]),
        (
            Column("sent", "sent in\na step", drop=2),
            lambda row: ABSENT if row.sent is None else quantity_text(row.sent, BYTES),
        ),
        (
            Column("step", "step"),
            lambda row: bounds_text(row.step, TIME) + " measured" * row.measured,
        ),
        (Column("speedup", "speedup", drop=8), lambda row: bounds_text(row.speedup)),
        (Column("end", "time", drop=7), lambda row: bounds_text(row.end, TIME)),
        (
            Column("gpu_hours", f"{unit} time", drop=6),
            lambda row: bounds_text(row.gpu_hours, hours_of("")),
        ),
        (Column("verdict", "verdict", "left", prose=True), _verdict),
    ]
    shown = [one for one in columns if any(one[1](row) != ABSENT for row in rows)]
    return table_of("Strategies", "rows", shown, rows, tuple(map(_record, rows)))


def _memory(row: AdviceRow) -> str:
    return ABSENT if row.memory is None else bounds_text(row.memory.whole.times(1 / _GIB))


def _verdict(row: AdviceRow) -> str:
    return (f"{row.verdict}: {row.reason}" if row.reason else row.verdict) + row.assuming


def bounds_text(bounds: Range | None, units: Units = NUMBER) -> str:
    """Return `0.14 to 0.15 s`, `>= 0.14 s`, `--` if nothing is known."""
    if bounds is None or (bounds.high is None and bounds.low == 0):
        return ABSENT
    return range_text(bounds, units)


def _ends(bounds: Range | None) -> dict[str, float | None] | None:
    return None if bounds is None else {"low": bounds.low, "high": bounds.high}


def _record(row: AdviceRow) -> dict[str, Any]:
    kinds = {} if row.memory is None else row.memory.kinds
    return {
        "strategy": row.strategy,
        "ranks": row.ranks,
        "nodes": row.nodes,
        "samples_per_rank": row.samples,
        "memory_bytes": {name: _ends(bounds) for name, bounds in kinds.items()} or None,
        "fits": row.fits,
        "sent_bytes": row.sent,
        "step_s": _ends(row.step),
        "measured": row.measured,
        "forecast_s": row.forecast.seconds if row.forecast is not None else None,
        "speedup": _ends(row.speedup),
        "efficiency": _ends(row.efficiency),
        "end_s": _ends(row.end),
        "gpu_hours": _ends(row.gpu_hours),
        "change": row.change or None,
        "verdict": row.verdict,
        "reason": row.reason,
        "assumes": [*row.memory_assumes, *row.step_assumes],
    }


def _known_values(
    program: ProgramSize, machine: MachineSize, measured: Sequence[MeasuredStep]
) -> ReportTable:
    """Return every value that the advice rests on, and where it comes from."""
    known = [
        (name, getattr(subject, name), source)
        for subject in (program, machine)
        for name, source in subject.sources.items()
    ]
    steps = [("step [s]", one.seconds, one.source) for one in measured]
    rows = [{"name": name, "value": v, "source": source} for name, v, source in (*known, *steps)]
    columns: list[Shown] = [
        (Column("name", "value", "left"), lambda row: str(row["name"])),
        (Column("value", "", "left", prose=True), lambda row: _text(row["value"])),
        (Column("source", "from", "left", prose=True), lambda row: str(row["source"])),
    ]
    return table_of("What is known", "sources", columns, rows)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:g}" for key, number in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
