"""A quantity between two numbers, and quantities as text in a unit that suits them: `3.71 us`."""

from collections.abc import Sequence
from math import floor, log10
from typing import NamedTuple

from hpc_train.base.value import Value


class Range(Value, frozen=True, kw_only=True):
    """The least and the most that a quantity can be; `high` is None if nothing limits it."""

    low: float = 0.0
    high: float | None = None

    def __add__(self, other: "Range") -> "Range":
        """Return the bounds of a sum."""
        high = None if self.high is None or other.high is None else self.high + other.high
        return Range(low=self.low + other.low, high=high)

    def times(self, factor: float) -> "Range":
        """Return the bounds of a multiple; the factor is not negative."""
        return Range(low=self.low * factor, high=None if self.high is None else self.high * factor)


def exactly(value: float) -> Range:
    """Return the bounds of a known number."""
    return Range(low=value, high=value)


class Unit(NamedTuple):
    """A unit of so many base units, used from `start` base units on."""

    start: float
    size: float
    name: str


Units = Sequence[Unit]
NUMBER: Units = (Unit(0.0, 1.0, ""),)
# From seconds. A step of 0.1 s or more is in seconds, as in every other table, and limits of jobs
# are in hours.
TIME: Units = (
    Unit(0.0, 1e-6, "us"),
    Unit(1e-3, 1e-3, "ms"),
    Unit(0.1, 1.0, "s"),
    Unit(120.0, 60.0, "min"),
    Unit(3600.0, 3600.0, "h"),
    Unit(10 * 86400.0, 86400.0, "d"),
    Unit(1000 * 86400.0, 365.25 * 86400.0, "years"),
)
# From bytes.
BYTES: Units = tuple(
    Unit(1000.0**power if power else 0.0, 1000.0**power, name)
    for power, name in enumerate(("B", "kB", "MB", "GB", "TB"))
)
_HOUR = 3600.0


def hours_of(noun: str) -> Units:
    """Return the units of time that all GPUs or ranks are busy, from hours: `3.2 GPU-h`."""
    return tuple(
        Unit(unit.start / _HOUR, unit.size / _HOUR, f"{noun}-{unit.name}".lstrip("-"))
        for unit in TIME
        if unit.name not in ("d", "years")
    )


def quantity_text(value: float, units: Units = NUMBER) -> str:
    """Return at least three significant digits in the largest unit that starts below a value."""
    if value == 0:
        return "0"
    unit = _unit(value, units)
    return f"{_digits(value / unit.size)} {unit.name}".rstrip()


def range_text(bounds: Range, units: Units = NUMBER) -> str:
    """Return `12.0 to 14.5 h`, `>= 12.0 h`, `<= 14.5 h`; one quantity if both ends look alike."""
    low = quantity_text(bounds.low, units)
    if bounds.high is None:
        return f">= {low}"
    high = quantity_text(bounds.high, units)
    if bounds.low == 0 and bounds.high > 0:
        return f"<= {high}"
    if low == high:
        return low
    if _unit(bounds.low, units) == _unit(bounds.high, units):
        low = low.partition(" ")[0]
    return f"{low} to {high}"


def _unit(value: float, units: Units) -> Unit:
    return next((unit for unit in reversed(units) if value >= unit.start), units[0])


def _digits(value: float) -> str:
    decimals = max(0, 2 - floor(log10(abs(value))))
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.{decimals}f}" if decimals < 10 else f"{value:.3g}"
