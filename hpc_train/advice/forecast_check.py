"""Advice -> the forecasts that a later run can check, and the check by its measured steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.advice import Advice, AdviceRow, MeasuredStep
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.stored_forecast import CheckedForecast, StoredForecast
from hpc_train.model.value_range import Range

GIB = 2.0**30
# A rank with another program than the one asked about is no check of it.
_SAME = 1e-6


def stored_forecasts(
    advice: Advice, machine: MachineSize, made: float
) -> tuple[StoredForecast, ...]:
    """Return the forecast of each row that has an upper bound and was not measured."""
    return tuple(
        StoredForecast(
            made=made,
            site=machine.site,
            partition=machine.partition,
            strategy=row.strategy,
            ranks=row.ranks,
            batch=row.batch or 0.0,
            step=row.step,
            value=row.forecast.seconds if row.forecast is not None else None,
            memory=_memory(row),
        )
        for row in advice.rows
        if not row.measured and row.step.high is not None and row.batch
    )


def _memory(row: AdviceRow) -> Range | None:
    """Return the bounds [GiB] of a row without a change that would need less memory."""
    if row.memory is None or row.change:
        return None
    whole = row.memory.whole.times(1 / GIB)
    return whole if whole.high is not None else None


def added(
    known: Sequence[StoredForecast], new: Sequence[StoredForecast]
) -> tuple[StoredForecast, ...]:
    """Return all forecasts; a new one that only repeats the last one of its size is left out."""
    last = {one.key: one for one in known}
    return (*known, *(one for one in new if not _repeats(one, last.get(one.key))))


def _repeats(one: StoredForecast, before: StoredForecast | None) -> bool:
    return before is not None and (one.step, one.memory) == (before.step, before.memory)


def checked_forecasts(
    stored: Sequence[StoredForecast], measured: Sequence[MeasuredStep]
) -> tuple[CheckedForecast, ...]:
    """Return, of each measured size, the last forecast that was made before its first run began."""
    return tuple(_checks(stored, measured))


def _checks(
    stored: Sequence[StoredForecast], measured: Sequence[MeasuredStep]
) -> Iterator[CheckedForecast]:
    for one in measured:
        before = [forecast for forecast in stored if _is_of(forecast, one)]
        if before:
            yield CheckedForecast(
                forecast=max(before, key=lambda forecast: forecast.made),
                seconds=one.seconds,
                peak_memory_gib=one.peak_memory_gib,
            )


def _is_of(forecast: StoredForecast, one: MeasuredStep) -> bool:
    """Whether a forecast is of a measured size, and older than its first run."""
    if one.started is None or not one.batch or forecast.made >= one.started:
        return False
    same = (forecast.strategy, forecast.ranks) == (one.strategy, one.ranks)
    return same and abs(forecast.batch - one.batch) <= _SAME * one.batch
