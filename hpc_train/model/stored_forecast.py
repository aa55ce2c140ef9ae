"""StoredForecast: what advice said of a size before it ran, and what a later run measured."""

from typing import Annotated

from msgspec import Meta

from hpc_train.model.value import Value
from hpc_train.model.value_range import Range

FORECAST_SCHEMA = 1
ForecastSchema = Annotated[int, Meta(le=FORECAST_SCHEMA)]


class StoredForecast(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A step [s] and the memory [GiB] of a rank, forecast at `made` (s since the epoch).

    `value` is the forecast of a curve, None if there were only bounds.
    """

    made: float
    site: str
    partition: str
    strategy: str
    ranks: int
    batch: float
    step: Range
    value: float | None = None
    memory: Range | None = None

    @property
    def key(self) -> tuple[str, str, str, int, float]:
        """What the forecast is about."""
        return (self.site, self.partition, self.strategy, self.ranks, self.batch)


class StoredForecasts(Value, frozen=True, kw_only=True):
    """The file of all forecasts of one program, in the order in which they were made."""

    schema: ForecastSchema = FORECAST_SCHEMA
    forecasts: tuple[StoredForecast, ...] = ()


class CheckedForecast(Value, frozen=True, kw_only=True):
    """A forecast, and the step [s] and peak memory [GiB] of the later runs at its size."""

    forecast: StoredForecast
    seconds: float
    peak_memory_gib: float | None = None

    @property
    def held(self) -> bool:
        """Whether the step is within its bounds, which a run may reach exactly."""
        return _within(self.seconds, self.forecast.step)

    @property
    def memory_held(self) -> bool | None:
        """Whether the memory is within its bounds; None if one of them is not known."""
        if self.peak_memory_gib is None or self.forecast.memory is None:
            return None
        return _within(self.peak_memory_gib, self.forecast.memory)


def _within(value: float, bounds: Range) -> bool:
    return bounds.low <= value and (bounds.high is None or value <= bounds.high)
