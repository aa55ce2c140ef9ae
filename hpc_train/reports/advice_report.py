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
from hpc_train.reports.report import Cell, Column, Report, ReportTable
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
    unit = "GPUs" if machine.gpus_per_node else "ranks"
    columns = (
        Column(key="strategy", heading="strategy", align="left"),
        Column(key="ranks", heading=unit),
        Column(key="nodes", heading="nodes", drop=1),
        Column(key="memory", heading=f"memory\n[GiB/{unit[:-1]}]"),
        Column(key="fits", heading="fits", align="left", drop=5),
        Column(key="sent", heading="sent in\na step", drop=2),
        Column(key="step", heading="step"),
        Column(key="speedup", heading="speedup", drop=8),
        Column(key="end", heading="time", drop=7),
        Column(key="gpu_hours", heading=f"{unit[:-1]} time", drop=6),
        Column(key="verdict", heading="verdict", align="left", prose=True),
    )
    cells = [_cells(row) for row in rows]
    known = [n for n, _ in enumerate(columns) if any(row[n].text != ABSENT for row in cells)]
    return ReportTable(
        title="Strategies",
        columns=tuple(columns[n] for n in known),
        rows=tuple(tuple(row[n] for n in known) for row in cells),
        key="rows",
        records=tuple(_record(row) for row in rows),
    )


def _cells(row: AdviceRow) -> tuple[Cell, ...]:
    memory = row.memory.whole.times(1 / _GIB) if row.memory is not None else None
    step = bounds_text(row.step, TIME)
    verdict = (f"{row.verdict}: {row.reason}" if row.reason else row.verdict) + row.assuming
    return (
        Cell(text=row.strategy, value=row.strategy),
        Cell(text=str(row.ranks), value=row.ranks),
        Cell(text=str(row.nodes), value=row.nodes),
        _bounds_cell(memory),
        Cell(text=_WORDS[row.fits], value=row.fits),
        Cell(text=ABSENT if row.sent is None else quantity_text(row.sent, BYTES), value=row.sent),
        Cell(text=f"{step} measured" if row.measured else step, value=_ends(row.step)),
        _bounds_cell(row.speedup),
        _bounds_cell(row.end, TIME),
        _bounds_cell(row.gpu_hours, hours_of("")),
        Cell(text=verdict, value=row.verdict),
    )


def bounds_text(bounds: Range | None, units: Units = NUMBER) -> str:
    """Return `0.14 to 0.15 s`, `>= 0.14 s`, `--` if nothing is known."""
    if bounds is None or (bounds.high is None and bounds.low == 0):
        return ABSENT
    return range_text(bounds, units)


def _ends(bounds: Range | None) -> dict[str, float | None] | None:
    return None if bounds is None else {"low": bounds.low, "high": bounds.high}


def _bounds_cell(bounds: Range | None, units: Units = NUMBER) -> Cell:
    return Cell(text=bounds_text(bounds, units), value=_ends(bounds))


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
    rows = [
        (Cell(text=name, value=name), Cell(text=_text(value), value=value),
         Cell(text=source, value=source))
        for name, value, source in (*known, *steps)
    ]  # fmt: skip
    return ReportTable(
        title="What is known",
        columns=(
            Column(key="name", heading="value", align="left"),
            Column(key="value", heading="", align="left", prose=True),
            Column(key="source", heading="from", align="left", prose=True),
        ),
        rows=tuple(rows),
        key="sources",
        records=tuple(
            {"name": name.value, "value": value.value, "source": source.value}
            for name, value, source in rows
        ),
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:g}" for key, number in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
