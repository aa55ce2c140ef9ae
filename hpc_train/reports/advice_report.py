"""Advice -> the report with a row for each strategy and size, sources, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hpc_train.model.advice import Advice, AdviceRow, MeasuredStep
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.program_size import ProgramSize
from hpc_train.model.report import Cell, Column, Report, ReportTable
from hpc_train.model.value import Value
from hpc_train.model.value_range import Range
from hpc_train.reports.crossed_links_table import crossed_links_tables, switch_notes
from hpc_train.reports.step_forecast_table import FORECASTS, forecast_tables
from hpc_train.reports.value_format import ABSENT, significant

_GIB = 2.0**30
_WORDS = {"yes": "yes", "no": "no", "perhaps": "perhaps", "unknown": ABSENT}
NOTES = (
    "A bound without an upper end is written with >=. Without a measured step there is no upper "
    "bound of the time: a formula alone says only what is impossible.",
    "step: max(compute, communication) <= T <= compute + communication; compute is the measured "
    "step in proportion to the samples of a rank, or the operations over the peak (lower bound).",
    "memory: parameters, gradients and state of the optimiser, gathered parameters, buckets, "
    "activations, logits, and the context of CUDA and NCCL; kinds are in JSON.",
)

_ENERGY = (
    "energy: of the nodes, by Slurm's accounting of the measured jobs; of the GPUs, by the power "
    "that the program printed; with <=, what the GPUs can draw at most in their hours by their "
    "power limit, without processors, network and cooling."
)

_WAIT = (
    "starts in: by `sbatch --test-only` just now, as if no job were submitted later. The time and "
    "the deadline begin with the job."
)


class AdviceInput(Value, frozen=True, kw_only=True):
    """The advice, what it is about, and notes on results that were not used.

    `waits` are the seconds until Slurm would start a job of so many ranks.
    """

    advice: Advice
    program: ProgramSize
    machine: MachineSize
    measured: tuple[MeasuredStep, ...] = ()
    waits: Mapping[int, float] = MappingProxyType({})
    notes: tuple[str, ...] = ()


def advice_report(found: AdviceInput) -> Report:
    """Return the report; JSON has `rows` with bounds as {"low", "high"} and memory by kind."""
    advice, machine = found.advice, found.machine
    links = crossed_links_tables([row.ranks for row in advice.rows], machine)
    each = machine.gpus_per_node
    gpu = f"{each} {machine.gpu or 'GPUs'} a node" if each else "no GPUs"
    return Report(
        title=f"{found.program.name} on {machine.site}, {machine.partition} ({gpu})",
        summary=(advice.one_rank, advice.recommended, *advice.choices, advice.limit),
        tables=(_rows(advice.rows, found), *forecast_tables(advice.rows), *links, _sources(found)),
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
    if found.waits:
        yield _WAIT
    if found.advice.refused:
        yield f"Without a row: {'; '.join(reason for _, reason in found.advice.refused)}."
    if any(row.energy_kwh for row in found.advice.rows):
        yield _ENERGY
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
        Column(key="sent", heading="sent\n[GB/step]", drop=2),
        Column(key="step", heading="step [s]"),
        Column(key="speedup", heading="speedup", drop=8),
        Column(key="end", heading="time [h]", drop=7),
        Column(key="gpu_hours", heading=f"{unit[:-1]}-hours", drop=6),
        Column(key="energy", heading="energy\n[kWh]", drop=4),
        Column(key="co2", heading="CO2\n[kg]", drop=3),
        Column(key="wait", heading="starts\nin [h]", drop=3),
        Column(key="cost", heading=f"cost\n[{found.machine.currency or ABSENT}]", drop=9),
        Column(key="verdict", heading="verdict", align="left", prose=True),
    )
    cells = [_cells(row, found) for row in rows]
    known = [n for n, _ in enumerate(columns) if any(row[n].text != ABSENT for row in cells)]
    return ReportTable(
        title="Strategies",
        columns=tuple(columns[n] for n in known),
        rows=tuple(tuple(row[n] for n in known) for row in cells),
        key="rows",
        records=tuple(_record(row, found) for row in rows),
    )


def _cells(row: AdviceRow, found: AdviceInput) -> tuple[Cell, ...]:
    machine, wait = found.machine, found.waits.get(row.ranks)
    memory = row.memory.whole.times(1 / _GIB) if row.memory is not None else None
    sent = ABSENT if row.sent is None else significant(row.sent / 1e9, 3)
    step = significant(row.step.low) if row.measured else bounds_text(row.step)
    verdict = f"{row.verdict}: {row.reason}" if row.reason else row.verdict
    hours = None if row.end is None else row.end.times(1 / 3600)
    return (
        Cell(text=row.strategy, value=row.strategy),
        Cell(text=str(row.ranks), value=row.ranks),
        Cell(text=str(row.nodes), value=row.nodes),
        Cell(text=bounds_text(memory), value=_ends(memory)),
        Cell(text=_WORDS[row.fits], value=row.fits),
        Cell(text=sent, value=row.sent),
        Cell(text=f"{step} measured" if row.measured else step, value=_ends(row.step)),
        Cell(text=bounds_text(row.speedup), value=_ends(row.speedup)),
        Cell(text=bounds_text(hours), value=_ends(hours)),
        Cell(text=bounds_text(row.gpu_hours), value=_ends(row.gpu_hours)),
        Cell(text=_energy_text(row), value=_ends(row.energy_kwh)),
        _bounds_cell(_co2_kg(row, machine)),
        Cell(text=ABSENT if wait is None else significant(wait / 3600, 3), value=wait),
        _bounds_cell(_cost(row, machine)),
        Cell(text=verdict, value=row.verdict),
    )


def bounds_text(bounds: Range | None) -> str:
    """Return `0.14 to 0.15`, `>= 0.14`, one number if both ends are equal, `--` if unknown."""
    if bounds is None or (bounds.high is None and bounds.low == 0):
        return ABSENT
    low = significant(bounds.low, 3)
    if bounds.high is None:
        return f">= {low}"
    high = significant(bounds.high, 3)
    if bounds.low == 0 and bounds.high > 0:
        return f"<= {high}"
    return low if low == high else f"{low} to {high}"


def _ends(bounds: Range | None) -> dict[str, float | None] | None:
    return None if bounds is None else {"low": bounds.low, "high": bounds.high}


def _bounds_cell(bounds: Range | None) -> Cell:
    return Cell(text=bounds_text(bounds), value=_ends(bounds))


def _energy_text(row: AdviceRow) -> str:
    """Return `1.2 to 1.5 (nodes)`, or `<= 2.1` by the power limit of the GPUs."""
    text = bounds_text(row.energy_kwh)
    return f"{text} ({row.meter})" if row.meter in ("nodes", "GPUs") else text


def _co2_kg(row: AdviceRow, machine: MachineSize) -> Range | None:
    if row.energy_kwh is None or machine.co2_g_per_kwh is None:
        return None
    return row.energy_kwh.times(machine.co2_g_per_kwh / 1000)


def _cost(row: AdviceRow, machine: MachineSize) -> Range | None:
    """Return the cost of a training in the currency of the site."""
    price = machine.price_per_gpu_hour
    if price is None or row.gpu_hours is None:
        return None
    return row.gpu_hours.times(price)


def _record(row: AdviceRow, found: AdviceInput) -> dict[str, Any]:
    machine = found.machine
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
        "energy_kwh": _ends(row.energy_kwh),
        "energy_of": row.meter or None,
        "co2_kg": _ends(_co2_kg(row, machine)),
        "cost": _ends(_cost(row, machine)),
        "wait_s": found.waits.get(row.ranks),
        "change": row.change or None,
        "verdict": row.verdict,
        "reason": row.reason,
    }


def _sources(found: AdviceInput) -> ReportTable:
    """Return every value that the forecast rests on, and where it comes from."""
    known = [
        (name, getattr(subject, name), source)
        for subject in (found.program, found.machine)
        for name, source in subject.sources.items()
    ]
    steps = [("step [s]", one.seconds, one.source) for one in found.measured]
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
