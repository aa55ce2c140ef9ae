"""Forecasts of steps -> their table: value, band, and each model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.advice import AdviceRow, StepForecast
from hpc_train.model.quantity_text import TIME, quantity_text, range_text
from hpc_train.model.report import Cell, Column, ReportTable

FORECASTS = (
    "forecast: the last slope of the measured sizes, continued; its band reaches from the lowest "
    "model to the highest, with each point left out once, and 5 % further for each doubling."
)


def forecast_tables(rows: Sequence[AdviceRow]) -> Iterator[ReportTable]:
    """Yield the table of the rows that have a forecast, if there are any."""
    found = [(row, row.forecast) for row in rows if row.forecast is not None]
    if not found:
        return
    columns = (
        Column(key="strategy", heading="strategy", align="left"),
        Column(key="ranks", heading="ranks"),
        Column(key="times", heading="times the\nlargest"),
        Column(key="step", heading="step"),
        Column(key="band", heading="band"),
        Column(key="models", heading="by model", align="left", prose=True),
    )
    yield ReportTable(
        title="Forecasts from the measured sizes",
        columns=columns,
        rows=tuple(_cells(row, forecast) for row, forecast in found),
        key="forecasts",
        records=tuple(_record(row, forecast) for row, forecast in found),
    )


def _cells(row: AdviceRow, forecast: StepForecast) -> tuple[Cell, ...]:
    texts = (
        row.strategy,
        str(row.ranks),
        f"{row.ranks / forecast.largest:.3g}",
        quantity_text(forecast.seconds, TIME),
        range_text(forecast.band, TIME),
        _models(forecast),
    )
    return tuple(Cell(text=text) for text in texts)


def _models(forecast: StepForecast) -> str:
    steps = forecast.models.items()
    each = ", ".join(f"{name} {quantity_text(step, TIME)}" for name, step in steps)
    return each if forecast.agree else f"models disagree: {each}"


def _record(row: AdviceRow, forecast: StepForecast) -> dict[str, object]:
    return {
        "strategy": row.strategy,
        "ranks": row.ranks,
        "largest_measured": forecast.largest,
        "step_s": {
            "value": forecast.seconds,
            "low": forecast.band.low,
            "high": forecast.band.high,
        },
        "models": forecast.models,
        "agree": forecast.agree,
    }
