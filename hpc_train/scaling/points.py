"""Runs -> one row per point: the numbers of runs, and the means of the ok runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.metrics import BASES, BASIS_COLUMNS, POINT_METRICS
from hpc_train.scaling.confidence_intervals import IntervalArrays, harmonic_means, means
from hpc_train.scaling.record_arrays import (
    NAN,
    Floats,
    Ints,
    Mask,
    agree,
    codes,
    known,
    moments,
    numbers,
    over,
)
from hpc_train.scaling.runs import OK

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
