"""Advice -> the report with a row for each strategy and size, sources, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hpc_train.model.advice import Advice, AdviceRow, MeasuredStep
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.program_size import ProgramSize
from hpc_train.model.quantity_text import (
    BYTES,
    NUMBER,
    TIME,
    Units,
    hours_of,
    quantity_text,
    range_text,
)
from hpc_train.model.report import Cell, Column, Report, ReportTable
from hpc_train.model.value import Value
from hpc_train.model.value_range import Range
from hpc_train.reports.crossed_links_table import crossed_links_tables, switch_notes
from hpc_train.reports.known_values_table import known_values_table
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


class AdviceInput(Value, frozen=True, kw_only=True):
    """The advice, what it is about, and notes on results that were not used."""

    advice: Advice
    program: ProgramSize
    machine: MachineSize
    measured: tuple[MeasuredStep, ...] = ()
    notes: tuple[str, ...] = ()


def advice_report(found: AdviceInput) -> Report:
    """Return the report; JSON has `rows` with bounds as {"low", "high"} and memory by kind."""
    advice, machine = found.advice, found.machine
    links = crossed_links_tables([row.ranks for row in advice.rows], machine)
    sources = known_values_table(found.program, machine, found.measured)
    each = machine.gpus_per_node
    gpu = f"{each} {machine.gpu or 'GPUs'} a node" if each else "no GPUs"
    return Report(
        title=f"{found.program.name} on {machine.site}, {machine.partition} ({gpu})",
        summary=(advice.one_rank, advice.recommended, *advice.choices, advice.limit),
        tables=(_rows(advice.rows, found), *links, sources),
        notes=tuple(_notes(found)),
        name=found.program.name,
        kind="Advice",
        all_met="",
        of_runs=False,
    )


def _notes(found: AdviceInput) -> Iterator[str]:
    yield from found.notes
    yield from switch_notes([row.ranks for row in found.advice.rows], found.machine)
    yield from NOTES
    if found.advice.refused:
        yield f"Without a row: {'; '.join(reason for _, reason in found.advice.refused)}."
    if any(row.forecast for row in found.advice.rows):
        yield FORECASTS
    yield from (f"Without a forecast: {text}." for text in found.advice.not_forecast)
    yield from (f"Missing: {text}." for text in found.advice.missing)


def _rows(rows: Sequence[AdviceRow], found: AdviceInput) -> ReportTable:
    unit = "GPUs" if found.machine.gpus_per_node else "ranks"
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
    verdict = f"{row.verdict}: {row.reason}" if row.reason else row.verdict
    return (
        Cell(text=row.strategy, value=row.strategy),
        Cell(text=str(row.ranks), value=row.ranks),
        Cell(text=str(row.nodes), value=row.nodes),
        _bounds_cell(memory),
        Cell(text=_WORDS[row.fits], value=row.fits),
        Cell(text=known_text(row.sent, BYTES), value=row.sent),
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


def known_text(value: float | None, units: Units) -> str:
    """Return a quantity with its unit, `--` if it is unknown."""
    return ABSENT if value is None else quantity_text(value, units)


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
    }
