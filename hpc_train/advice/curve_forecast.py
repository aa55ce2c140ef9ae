"""Measured rates of growing sizes -> the rate of a larger size, by four models and with a band.

The forecast itself repeats the last slope: of all models, its median error on published curves is
the least (docs/advise.md has the table). The band reaches from the lowest model to the highest,
with each point left out once, and 5 % further for each doubling beyond the measurements.

Amdahl: n/S = a + b n with a, b >= 0, by least squares of relative residuals (AFIPS 30, 1967).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

LEAST_SIZES, LEAST_ON_NODES, MOST_TIMES = 3, 2, 4.0
PER_DOUBLING = 0.05


class SizeRate(NamedTuple):
    """The rate [samples/s] of all ranks together on so many ranks and nodes."""

    ranks: int
    nodes: int
    rate: float


class RateForecast(NamedTuple):
    """The rate [samples/s] of a larger size, its band, and the rate by each model."""

    rate: float
    low: float
    high: float
    models: dict[str, float]
    agree: bool


Curve = Sequence[SizeRate]


def refusal(curve: Curve, ranks: int) -> str | None:
    """Return why these rates, in ascending order, give no forecast for so many ranks, or None."""
    several = sum(one.nodes > 1 for one in curve)
    if len(curve) < LEAST_SIZES or several < LEAST_ON_NODES:
        return (
            f"a forecast needs {LEAST_SIZES} measured sizes, {LEAST_ON_NODES} of them on several "
            f"nodes; there are {len(curve)} and {several}"
        )
    if ranks > MOST_TIMES * curve[-1].ranks:
        return (
            f"no forecast beyond {MOST_TIMES * curve[-1].ranks:g}, {MOST_TIMES:g} times the "
            f"largest measured size: measure {2 * curve[-1].ranks} first"
        )
    return None


def forecast_rate(curve: Curve, ranks: int) -> RateForecast:
    """Return the rate of more ranks than the largest of at least two measured sizes."""
    models = {name: model(curve, ranks) for name, model in MODELS.items()}
    models = {name: rate for name, rate in models.items() if rate > 0}
    shorter = [[*curve[:n], *curve[n + 1 :]] for n in range(len(curve)) if len(curve) > 2]
    rates = [*models.values(), *(_last_slope(one, ranks) for one in shorter)]
    doubt = PER_DOUBLING * math.log2(ranks / curve[-1].ranks)
    return RateForecast(
        rate=models[LAST_SLOPE],
        low=min(rates) * (1 - doubt),
        high=max(rates) * (1 + doubt),
        models=models,
        agree=max(models.values()) <= min(models.values()) * (1 + 2 * doubt),
    )


def _last_slope(curve: Curve, ranks: int) -> float:
    """Repeat the slope of the last two sizes; the rate grows at most in proportion."""
    before, last = curve[-2:]
    slope = math.log(last.rate / before.rate) / math.log(last.ranks / before.ranks)
    return last.rate * float((ranks / last.ranks) ** min(slope, 1.0))


def _amdahl(curve: Curve, ranks: int) -> float:
    sizes = [one.ranks / curve[0].ranks for one in curve]
    times = [q * curve[0].rate / one.rate for q, one in zip(sizes, curve, strict=True)]
    weights = [1 / time**2 for time in times]
    a, b = _line(sizes, times, weights)
    if b < 0:
        a, b = sum(1 / time for time in times) / sum(weights), 0.0
    elif a < 0:
        squares = sum(weight * q * q for weight, q in zip(weights, sizes, strict=True))
        a, b = 0.0, sum(q / time for q, time in zip(sizes, times, strict=True)) / squares
    q = ranks / curve[0].ranks
    return curve[0].rate * q / (a + b * q)


def _falling_efficiency(curve: Curve, ranks: int) -> float:
    """The efficiency falls by the same amount with each doubling."""
    first = curve[0]
    doublings = [math.log2(one.ranks / first.ranks) for one in curve]
    efficiency = [one.rate / first.rate * first.ranks / one.ranks for one in curve]
    a, b = _line(doublings, efficiency, [1.0] * len(curve))
    q = ranks / first.ranks
    return first.rate * q * (a + b * math.log2(q))


def _power(curve: Curve, ranks: int) -> float:
    sizes = [math.log(one.ranks) for one in curve]
    a, b = _line(sizes, [math.log(one.rate) for one in curve], [1.0] * len(curve))
    return math.exp(a + b * math.log(ranks))


LAST_SLOPE = "last slope"
MODELS: dict[str, Callable[[Curve, int], float]] = {
    LAST_SLOPE: _last_slope,
    "Amdahl": _amdahl,
    "efficiency by doublings": _falling_efficiency,
    "power law": _power,
}


def _line(
    xs: Sequence[float], ys: Sequence[float], weights: Sequence[float]
) -> tuple[float, float]:
    """Return intercept and slope of the weighted least squares; the x differ."""
    whole = sum(weights)
    x0 = sum(w * x for w, x in zip(weights, xs, strict=True)) / whole
    y0 = sum(w * y for w, y in zip(weights, ys, strict=True)) / whole
    squares = sum(w * (x - x0) ** 2 for w, x in zip(weights, xs, strict=True))
    products = sum(w * (x - x0) * (y - y0) for w, x, y in zip(weights, xs, ys, strict=True))
    slope = products / squares
    return y0 - slope * x0, slope
