"""Starts and rates of the runs of a study -> what their order in time says of the intervals.

An interval promises its coverage for independent runs. Two tests look for what contradicts that:
a drift of the machine over the study, and noise that neighbours in time share. Each has half of the
level, so that at most 5 % of studies of independent runs have a finding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.tables.group_reductions import Floats, moments, numbers
from hpc_train.tables.points import Grouped, bases_of, grouped, rates_of
from hpc_train.tables.probability_distributions import beta_below, student_below
from hpc_train.tables.record_arrays import Ints, Mask
from hpc_train.tables.runs import OK

LEVEL = 0.05
# Residuals of fewer degrees of freedom show no autocorrelation that is worth a test.
LEAST_FREEDOM = 3


class RunOrder(NamedTuple):
    """What the order of the runs shows; each field is None, or empty, if it shows nothing.

    `one_session`: the series in which all runs of a point had ended before those of another one
    began, so that a change of the machine is not distinguished from scaling. `drift`: the change
    of the rates from the first run to the last, as a factor. `autocorrelation`: the correlation of
    the residuals of neighbours in time.
    """

    one_session: tuple[str, ...] = ()
    drift: float | None = None
    autocorrelation: float | None = None


class _InOrder(NamedTuple):
    """Points and residuals (of logarithms of rates) of the runs, in the order of their starts."""

    point: Ints
    residual: Floats


def run_order(runs: pd.DataFrame) -> RunOrder:
    """Return what the starts of the ok runs show, from rows of `run_frame`.

    Nothing is returned if the start of a run is not known.
    """
    ok = (runs["state"] == OK).to_numpy(dtype=bool)
    started = numbers(runs, "started")
    if not ok.any() or np.isnan(started[ok]).any():
        return RunOrder()
    groups = grouped(runs)
    ordered = _in_order(groups, started)
    drift = _drift(ordered)
    shared = None if drift is not None else _autocorrelation(ordered)
    return RunOrder(_one_session(groups, started), drift, shared)


def in_one_session(runs: pd.DataFrame, groups: Grouped) -> Mask:
    """Return which points belong to a series whose points each ran in a session of their own."""
    found = run_order(runs).one_session
    chosen = np.array([label in found for label in groups.labels], dtype=bool)
    return chosen[groups.of_point] if groups.size else np.zeros(0, dtype=bool)


def _in_order(groups: Grouped, started: Floats) -> _InOrder:
    logs = log_rates(groups)
    used = np.flatnonzero(~np.isnan(logs))
    used = used[np.argsort(started[used], kind="stable")]
    mean = moments(logs, groups.point, groups.size).mean
    return _InOrder(groups.point[used], logs[used] - mean[groups.point[used]])


def log_rates(groups: Grouped) -> Floats:
    """Return the logarithm of each run's rate, NaN if it has none."""
    rates = rates_of(groups)
    names, bases = list(rates), bases_of(groups, rates)
    basis = np.array([names.index(name) for name in bases], dtype=np.int64)[groups.series]
    return np.asarray(np.log(np.choose(basis, list(rates.values()))), dtype=np.float64)


def _one_session(groups: Grouped, started: Floats) -> tuple[str, ...]:
    """Return the series whose points, all repeated, ran in times that do not overlap.

    None if another repeated series ran in turns: then the order was random, and this one is chance.
    """
    ended = started + np.nan_to_num(groups.ok_only("wall_s"))
    found, in_turns = [], False
    for number, label in enumerate(groups.labels):
        own = np.flatnonzero(groups.ok & (groups.series == number))
        each, code, count = np.unique(groups.point[own], return_inverse=True, return_counts=True)
        if len(each) < 2 or count.min() < 2:
            continue
        first, last = np.full(len(each), np.inf), np.full(len(each), -np.inf)
        np.minimum.at(first, code, started[own])
        np.maximum.at(last, code, ended[own])
        order = np.argsort(first)
        if (first[order][1:] >= last[order][:-1]).all():
            found.append(label)
        else:
            in_turns = True
    return () if in_turns else tuple(found)


def _drift(runs: _InOrder) -> float | None:
    """Return the factor of a linear trend over the order, if it is significant.

    Student's t of the slope of the residuals over the order within the points (Frisch and Waugh,
    Econometrica 1, 1933).
    """
    size = int(runs.point.max(initial=-1)) + 1
    place = np.arange(len(runs.point), dtype=np.float64)
    place -= moments(place, runs.point, size).mean[runs.point]
    freedom = len(place) - len(np.unique(runs.point)) - 1
    spread = float((place**2).sum())
    if freedom < LEAST_FREEDOM or not spread:
        return None
    slope = float((place * runs.residual).sum()) / spread
    rest = float((runs.residual**2).sum()) - slope**2 * spread
    if not rest > 0:
        return None
    t = abs(slope) / np.sqrt(rest / freedom / spread)
    if 2 * student_below(freedom, -t) >= LEVEL / 2:
        return None
    return float(np.exp(slope * (len(place) - 1)))


def _autocorrelation(runs: _InOrder) -> float | None:
    """Return r = sum(e_t e_(t+1)) / sum(e_t^2) of the residuals, if it is significantly positive.

    Mean and variance of r for independent normal noise are those of a ratio of quadratic forms;
    a beta distribution on (-1, 1) with these moments gives the probability (J. Durbin and
    G. S. Watson, Biometrika 37, 1950; 38, 1951).
    """
    total = float((runs.residual**2).sum())
    freedom = len(runs.point) - len(np.unique(runs.point))
    if freedom < LEAST_FREEDOM or not total > 0:
        return None
    r = float((runs.residual[1:] * runs.residual[:-1]).sum()) / total
    trace, square = _traces(runs.point)
    mean = trace / freedom
    variance = (trace**2 + 2 * square) / (freedom * (freedom + 2)) - mean**2
    centre, share = (1 + mean) / 2, variance / 4
    if not share > 0:
        return None
    both = centre * (1 - centre) / share - 1
    above = 1 - beta_below(centre * both, (1 - centre) * both, (1 + r) / 2)
    return r if above < LEVEL / 2 else None


def _traces(point: Ints) -> tuple[float, float]:
    """Return tr(MA) and tr(MAMA) for M, which removes the means of the points, and A.

    A has 1/2 beside its diagonal, so that e'Ae is the sum over neighbours. With P = 1 - M,
    tr(MAMA) = tr(AA) - 2 tr(PAA) + tr(PAPA).
    """
    _, code, count = np.unique(point, return_inverse=True, return_counts=True)
    weight = 1.0 / count[code]
    here, there = code[:-1], code[1:]
    same = here == there
    trace = -float(weight[:-1][same].sum())
    twice = len(point) - 1
    squares = float(weight[1:].sum() + weight[:-1].sum())
    apart = code[:-2] == code[2:]
    squares += 2 * float(weight[:-2][apart].sum())
    pairs = np.stack([np.minimum(here, there), np.maximum(here, there)])
    kinds, often = np.unique(pairs, axis=1, return_counts=True)
    one, other = kinds
    # (D'AD)_ij is half the number of i,j and j,i neighbours: all of them on the diagonal.
    entry = np.where(one == other, often, often / 2.0)
    entry = entry**2 / (count[one] * count[other]) * np.where(one == other, 1, 2)
    return trace, twice / 2 - squares / 2 + float(entry.sum())
