"""Checked forecasts -> the table that compares them with the measured steps."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hpc_train.model.quantity_text import TIME, quantity_text
from hpc_train.model.report import Cell, Column, Report, ReportTable
from hpc_train.model.stored_forecast import CheckedForecast
from hpc_train.model.value_range import Range
from hpc_train.reports.advice_report import bounds_text
from hpc_train.reports.study_tables import before_runs
from hpc_train.reports.value_format import ABSENT, significant

NOTE = (
    "Forecast and measured: what `hpctrain advise` said last before the first run of a point; "
    "inside: it is within the bounds. Memory is the peak of the rank that needs most."
)
_COLUMNS = (
    Column(key="strategy", heading="strategy", align="left"),
    Column(key="ranks", heading="ranks"),
    Column(key="bounds", heading="forecast\nstep"),
    Column(key="step_s", heading="measured"),
    Column(key="inside", heading="inside", align="left"),
    Column(key="memory", heading="forecast\n[GiB/rank]"),
    Column(key="memory_gib", heading="measured\n[GiB]"),
    Column(key="memory_inside", heading="inside", align="left"),
)
_STEP_COLUMNS = 5


def with_checked_forecasts(report: Report, found: Sequence[CheckedForecast]) -> Report:
    """Return the report with the table of the forecasts, if there are any."""
    if not found:
        return report
    with_memory = any(one.memory_held is not None for one in found)
    shown = len(_COLUMNS) if with_memory else _STEP_COLUMNS
    table = ReportTable(
        title="Forecast and measured",
        columns=_COLUMNS[:shown],
        rows=tuple(_cells(one)[:shown] for one in found),
        key="forecasts",
        records=tuple(map(_record, found)),
    )
    return msgspec.structs.replace(
        report, tables=before_runs(report, (table,)), notes=(*report.notes, NOTE)
    )


def _cells(one: CheckedForecast) -> tuple[Cell, ...]:
    forecast = one.forecast
    memory = ABSENT if one.peak_memory_gib is None else significant(one.peak_memory_gib, 3)
    texts = (
        forecast.strategy,
        str(forecast.ranks),
        bounds_text(forecast.step, TIME),
        quantity_text(one.seconds, TIME),
        _yes(one.held),
        bounds_text(forecast.memory),
        memory,
        _yes(one.memory_held),
    )
    return tuple(Cell(text=text) for text in texts)


def _yes(held: bool | None) -> str:
    return ABSENT if held is None else "yes" if held else "no"


def _record(one: CheckedForecast) -> dict[str, object]:
    forecast = one.forecast
    return {
        "strategy": forecast.strategy,
        "ranks": forecast.ranks,
        "global_batch": forecast.batch,
        "made": forecast.made,
        "forecast_step_s": {"value": forecast.value, **_ends(forecast.step)},
        "step_s": one.seconds,
        "inside": one.held,
        "forecast_memory_gib": None if forecast.memory is None else _ends(forecast.memory),
        "memory_gib": one.peak_memory_gib,
        "memory_inside": one.memory_held,
    }


def _ends(bounds: Range) -> dict[str, float | None]:
    return {"low": bounds.low, "high": bounds.high}
