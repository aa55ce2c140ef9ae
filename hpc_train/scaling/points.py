"""Runs -> points of their sizes: means and ratios with intervals; the replicate is the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.metrics import BASES, BASIS_COLUMNS, POINT_METRICS
from hpc_train.scaling.record_arrays import (
    LEAST,
    NAN,
    Floats,
    Ints,
    Mask,
    Moments,
    agree,
    codes,
    known,
    moments,
    numbers,
    over,
)
from hpc_train.scaling.runs import OK

# Of an interval that is not one of several decisions at once.
CONFIDENCE = 0.95
# Relative spread below which repeated values are the same number, up to the rounding of their mean.
_EQUAL = 1e-12
# Sums of the same numbers in different orders differ by less.
ROUNDING = 1e-9


class IntervalArrays(NamedTuple):
    """Many values with their limits; NaN if there is none."""

    value: Floats
    low: Floats
    high: Floats


def students_t(freedom: Any, confidence: float | Floats) -> Any:
    """Return t such that a share `confidence` of the distribution is within -t and t.

    NaN where there are no degrees of freedom.
    """
    known = np.where(np.asarray(freedom) > 0, freedom, NAN)
    if np.isnan(known).all():
        return np.full(np.broadcast_shapes(np.shape(known), np.shape(confidence)), NAN)
    from scipy.special import stdtrit

    return stdtrit(known, (1 + np.asarray(confidence)) / 2)


def welch(a: Moments, b: Moments, confidence: float | Floats) -> IntervalArrays:
    """Return a/b from moments of logarithms, with Welch's interval.

    d = mean(ln a) - mean(ln b); exp(d +- t_v sqrt(sa^2/na + sb^2/nb)) with v by
    Welch-Satterthwaite; no limits where a side has one value, or where all values of each side are
    equal: the spread was then not measured. No upper limit where it is beyond all sizes
    (`LEAST`, `MOST`).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        difference = a.mean - b.mean
        spread_a, spread_b = _measured(a.variance / a.number, b.variance / b.number)
        half = students_t(_freedom(spread_a, spread_b, a, b), confidence) * np.sqrt(
            spread_a + spread_b
        )
        limits = (np.exp(difference), np.exp(difference - half), np.exp(difference + half))
    return _within(IntervalArrays(*limits))


def means(times: Moments, confidence: float) -> IntervalArrays:
    """Return arithmetic means of times with Student's limits of their logarithm.

    mean exp(+- t s / (mean sqrt(n))): by the delta method the logarithm of a mean has the standard
    error s / (mean sqrt(n)). No limit is below zero. No limits for one value or equal values.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative, _ = _measured(times.variance / times.number / times.mean**2, 0.0)
        factor = np.exp(students_t(times.number - 1, confidence) * np.sqrt(relative))
        limits = (times.mean / factor, times.mean * factor)
    return _within(IntervalArrays(times.mean, *limits))


def harmonic_means(times: Moments, confidence: float) -> IntervalArrays:
    """Return 1/mean(1/x) of rates from the moments of 1/x, with the limits of that mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value, low, high = (1 / limit for limit in means(times, confidence))
    return _within(IntervalArrays(value, high, low))


def noise_limit(a: Moments, b: Moments, confidence: float) -> Floats:
    """Return the largest |mean(a) - mean(b)| that noise explains, from moments of two samples.

    t_v sqrt(sa^2/na + sb^2/nb) with Student's t, v by Welch-Satterthwaite; NaN where a side has
    fewer than two values, or where all values of each side are equal.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = np.maximum(np.abs(a.mean), np.abs(b.mean))
        spread_a, spread_b = _measured(
            a.variance / a.number / scale**2, b.variance / b.number / scale**2
        )
        t = students_t(_freedom(spread_a, spread_b, a, b), confidence)
        limit: Floats = t * np.sqrt(spread_a + spread_b) * scale
    return limit


def corrected(confidence: float, tests: int) -> float:
    """Return the level of each of several tests, so that their common level is `confidence`.

    (C. E. Bonferroni, 1936: 1 - (1 - confidence)/m, whether the tests are independent or not.)
    """
    return 1 - (1 - confidence) / max(tests, 1)


def step_down(
    limits: Callable[[Floats], IntervalArrays], size: int, tests: int, confidence: float
) -> tuple[IntervalArrays, Floats]:
    """Return the limits of `size` ratios and their levels; `limits` has those of given levels.

    The level is 1 - (1 - confidence)/m for the m of `tests` comparisons that are undecided. A ratio
    whose interval excludes 1 is decided at that level and leaves, until none leaves (S. Holm,
    Scandinavian Journal of Statistics 6, 1979, 65-70).
    """
    level, decided = np.full(size, corrected(confidence, tests)), np.zeros(size, dtype=bool)
    while True:
        found = limits(level)
        apart = (found.low > 1 + ROUNDING) | (found.high < 1 - ROUNDING)
        if not (apart & ~decided).any():
            return found, np.where(np.isnan(found.low), NAN, level)
        decided |= apart
        level[~decided] = corrected(confidence, tests - int(decided.sum()))


def divided(limits: IntervalArrays, by: Floats) -> IntervalArrays:
    """Return values with limits, each divided by a number that is known exactly."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _within(IntervalArrays(*(limit / by for limit in limits)))


def _within(found: IntervalArrays) -> IntervalArrays:
    """Drop limits outside the range of measurements; a lower limit below it becomes 0."""
    none = np.isnan(known(found.value))
    low = np.where(np.abs(found.low) < LEAST, 0.0, known(found.low))
    return IntervalArrays(
        *(np.where(none, NAN, one) for one in (found.value, low, known(found.high)))
    )


def _measured(spread_a: Any, spread_b: Any) -> tuple[Any, Any]:
    """Return two relative variances; NaN where neither is above rounding: no spread was measured.

    Equal repetitions are copies, or were printed with too few digits; their noise is unknown.
    """
    known = np.maximum(spread_a, spread_b) > _EQUAL**2
    return np.where(known, spread_a, NAN), np.where(known, spread_b, NAN)


def _freedom(spread_a: Floats, spread_b: Floats, a: Moments, b: Moments) -> Floats:
    """Return the degrees of freedom of a sum of two variances (Welch 1947, Satterthwaite 1946)."""
    share = spread_a / (spread_a + spread_b)
    return 1 / (share**2 / (a.number - 1) + (1 - share) ** 2 / (b.number - 1))


def f_above(more: float, freedom: float, ratio: float) -> float:
    """Return the probability of a ratio of variances above `ratio`, with two degrees of freedom."""
    from scipy.special import fdtrc

    return float(fdtrc(more, freedom, ratio))


class Differences(NamedTuple):
    """Moments of the differences of each point from another one, and whether they may be used.

    `complete`: each run of both points with a value is in a pair.
    """

    moments: Moments
    complete: Mask

    def ratio(self, confidence: float | Floats) -> IntervalArrays:
        """Return the ratios, with Student's interval of n - 1 degrees of freedom."""
        size = len(self.complete)
        exactly_one = Moments(np.full(size, np.inf), np.zeros(size), np.zeros(size))
        return welch(self.moments, exactly_one, confidence)

    def of(self, points: Ints) -> Differences:
        """Return those of some points, in that order."""
        return Differences(self.moments.of(points), self.complete[points])

    def instead_of(self, independent: IntervalArrays, confidence: float | Floats) -> IntervalArrays:
        """Return the paired ratios, where there are none those of `independent` samples."""
        limits = zip(self.ratio(confidence), independent, strict=True)
        return IntervalArrays(*(np.where(self.complete, *each) for each in limits))

    def inverse(self) -> Differences:
        """Return the differences of the other point from each point."""
        number, mean, variance = self.moments
        return Differences(Moments(number, -mean, variance), self.complete)


def block_codes(runs: pd.DataFrame) -> Ints:
    """Return the number of the block of each run, -1 if it is not known."""
    if "block" not in runs:
        return np.full(len(runs), -1, dtype=np.int64)
    codes, names = pd.factorize(runs["block"])
    number = [-1 if name == "" else place for place, name in enumerate(names)]
    return np.array([*number, -1], dtype=np.int64)[codes]


def differences(logs: Floats, point: Ints, block: Ints, other: Ints) -> Differences:
    """Return the differences of points from their `other` points, from logarithms of runs.

    `logs`, `point` and `block` have a value for each run (NaN and -1 if unknown), `other` has one
    for each point (-1 without).
    """
    size = len(other)
    valued = ~np.isnan(logs)
    known = np.flatnonzero(valued & (block >= 0))
    if not len(known):
        none = np.full(size, NAN)
        return Differences(Moments(np.zeros(size), none, none), np.zeros(size, dtype=np.bool_))
    width = int(block.max(initial=0)) + 1
    keys, first, twice = np.unique(
        point[known] * width + block[known], return_index=True, return_counts=True
    )
    wanted = other[point[known]]
    place = np.searchsorted(keys, wanted * width + block[known])
    place = np.minimum(place, max(len(keys) - 1, 0))
    paired = np.zeros(len(known), dtype=bool)
    if len(keys):
        paired = (wanted >= 0) & (keys[place] == wanted * width + block[known])
        paired &= twice[place] == 1
    change = np.full(len(logs), NAN)
    pairs = known[paired]
    change[pairs] = logs[pairs] - logs[known[first[place[paired]]]]
    found = moments(change, point, size)
    number = np.bincount(point[valued], minlength=size)
    complete = (found.number > 0) & (found.number == number) & (other >= 0)
    complete &= found.number == np.append(number, -1)[other]
    return Differences(found, complete)


# The numbers of ranks and GPUs distinguish points only if nodes are not recorded.
KEY = ["series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus"]
TO_TRAIN = "time to train"


class Grouped(NamedTuple):
    """Runs with the numbers of their point and of its series, points in the order of the table.

    `first` is the first run of each point, `labels` are the names of the series.
    """

    runs: pd.DataFrame
    ok: Mask
    point: Ints
    series: Ints
    first: Ints
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.first)

    @property
    def of_point(self) -> Ints:
        """The series of each point."""
        return self.series[self.first]

    @property
    def sizes(self) -> tuple[Floats, ...]:
        """GPUs, ranks and nodes of each point, NaN if unknown."""
        return tuple(column[self.first] for column in sizes_of(self.runs))

    def ok_only(self, name: str) -> Floats:
        """Return a column, NaN if the run is not ok."""
        return np.where(self.ok, numbers(self.runs, name), NAN)

    def counted(self, chosen: Mask) -> Ints:
        """Return the number of these runs at each point."""
        return np.bincount(self.point[chosen], minlength=self.size)


def grouped(runs: pd.DataFrame) -> Grouped:
    """Number the points: series in order of appearance, in each of them the smallest first."""
    series, labels = pd.factorize(runs["series"])
    point = codes([runs[name] for name in KEY])
    first = np.unique(point, return_index=True)[1]
    sizes = [column[first] for column in sizes_of(runs)]
    order = np.lexsort((*sizes[::-1], series[first]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ok = (runs["state"] == OK).to_numpy(dtype=bool)
    names = tuple(str(label) for label in labels)
    return Grouped(runs, ok, place[point], series.astype(np.int64), first[order], names)


def sizes_of(runs: pd.DataFrame) -> tuple[Floats, ...]:
    """Return the sort keys of the size: GPUs, ranks and nodes, NaN if unknown."""
    return (numbers(runs, "gpus"), numbers(runs, "ranks"), numbers(runs, "nodes"))


def rates_by(groups: Grouped, basis: Sequence[str], work: Floats) -> Floats:
    """Return how much work each run does in a second, by the basis and the work of its point.

    It is a throughput, or the inverse of a time. NaN if a run is not ok, or has no positive value.
    """
    of_run, rates = np.array(basis, dtype=object)[groups.point], np.full(len(groups.point), NAN)
    for name in set(basis):
        rates = np.where(of_run == name, _inverse_times(groups, name), rates)
    return rates * work[groups.point]


def _inverse_times(groups: Grouped, basis: str) -> Floats:
    values = groups.ok_only(BASIS_COLUMNS[basis])
    with np.errstate(divide="ignore", over="ignore"):
        rate = values if BASES[basis].is_rate else 1 / values
    return np.where((values > 0) & np.isfinite(rate), rate, NAN)


def bases_of(groups: Grouped, mixed: Collection[str] = ()) -> list[str]:
    """Return the quantity by which each point is compared, the same for all points of a series.

    The first of throughput (in samples, in tokens), epoch time, step time and time to train that
    every ok run of the series has; failing that, the first that any has. Of the `mixed` series,
    whose batch changes with the size, the time to train counts first.
    """
    size, names = len(groups.labels), list(BASES)
    every = np.bincount(groups.series[groups.ok], minlength=size)
    known = (~np.isnan(_inverse_times(groups, name)) for name in names)
    have = np.array([np.bincount(groups.series[one], minlength=size) for one in known])
    whole, some = (have > 0) & (have == every), have > 0
    chosen = np.where(whole.any(0), whole.argmax(0), some.argmax(0))
    trained = names.index(TO_TRAIN)
    is_mixed = np.array([label in mixed for label in groups.labels], dtype=bool)
    chosen = np.where(is_mixed & whole[trained], trained, chosen)
    return [names[index] for index in chosen[groups.of_point]]


def point_columns(groups: Grouped, confidence: float) -> dict[str, Any]:
    """Return the columns of the points that need no baseline.

    Means over runs are arithmetic for times and harmonic for rates (Hoefler and Belli, SC15).
    """
    runs, size = groups.runs, groups.size
    first = runs.iloc[groups.first]
    columns: dict[str, Any] = {name: first[name].array for name in (*KEY, "cpus_per_task")}
    states = [Counter[str]() for _ in range(size)]
    used: list[set[str]] = [set() for _ in range(size)]
    for point, ok, state, transport in zip(
        groups.point.tolist(), groups.ok.tolist(), runs["state"], runs["transport"], strict=True
    ):
        if not ok:
            states[point][str(state)] += 1
        if transport:
            used[point].add(transport)
    cut = groups.ok & runs["whole_seconds"].to_numpy(dtype=bool)
    columns |= {
        "n_ok": groups.counted(groups.ok),
        "n_submitted": np.bincount(groups.point, minlength=size),
        "not_ok": list(map(not_ok, states)),
        "transport": [" / ".join(sorted(names)) for names in used],
        "whole_seconds": groups.counted(cut) > 0,
    }
    for metric in POINT_METRICS:
        values = groups.ok_only(metric.key)
        if metric.over_runs in ("least", "most"):
            how: Any = "min" if metric.over_runs == "least" else "max"
            columns[metric.key] = over(how, values, groups.point, size)
        elif metric.over_runs == "same":
            low, high = (over(how, values, groups.point, size) for how in ("min", "max"))
            columns[metric.key] = np.where(agree(low, high), low, NAN)
        elif metric.over_runs == "mean":
            own = moments(values, groups.point, size)
            # Quantiles of Student's t take longer than all means, so only for intervals that are
            # shown.
            found = means(own, confidence) if metric.limits else None
            columns |= limited(metric.key, found) if found else {metric.key: own.mean}
        elif metric.over_runs == "harmonic":
            with np.errstate(divide="ignore", over="ignore"):
                times = np.where(values > 0, 1 / values, NAN)
            limits = harmonic_means(moments(times, groups.point, size), confidence)
            columns |= limited(metric.key, limits) if metric.limits else {metric.key: limits.value}
    columns["samples_per_second_per_rank"] = columns["samples_per_second"] / groups.sizes[1]
    return columns


def limited(name: str, limits: IntervalArrays) -> dict[str, Floats]:
    """Return the three columns of a quantity with limits."""
    return {name: limits.value, f"{name}_low": limits.low, f"{name}_high": limits.high}


def not_ok(states: Counter[str]) -> str:
    """Return `1 FAILED, 2 MISSING, 1 without a result`; nothing when all are ok."""
    words = {"UNPARSED": "without a result"}
    return ", ".join(f"{n} {words.get(state, state)}" for state, n in sorted(states.items()))


def cost_columns(
    groups: Grouped, basis: Sequence[str], columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the hours for a million samples, or tokens if these are what a point counts.

    At a steady rate: start-up, evaluation and failed runs only count in the hours spent.
    """
    tokens = np.array([BASES[name].item == "tokens" for name in basis], dtype=bool)
    rate = np.where(tokens, columns["tokens_per_second"], columns["samples_per_second"])
    gpus, _, nodes = (np.where(units > 0, units, NAN) for units in groups.sizes)
    wall = over("sum", numbers(groups.runs, "wall_s"), groups.point, groups.size)
    with np.errstate(all="ignore"):
        return {
            "gpu_hours_per_million": known(1e6 * gpus / rate / 3600),
            "node_hours_per_million": known(1e6 * nodes / rate / 3600),
            "gpu_hours_spent": known(gpus * wall / 3600),
        }
