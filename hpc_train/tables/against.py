"""Points -> their ratios to the baseline, and to the points of half their size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.tables.baseline import baselines
from hpc_train.tables.halves import halves
from hpc_train.tables.laws import doubling_efficiency, karp_flatt
from hpc_train.tables.moments import Bools, Codes, Floats, moments
from hpc_train.tables.points import BASES, Grouped, limited, sizes_of, variation
from hpc_train.tables.ratios import Limits, shared
from hpc_train.tables.refusals import refused
from hpc_train.tables.samples import Samples, samples
from hpc_train.tables.steps import NAN

TO_TRAIN = "time to train"
Columns = Mapping[str, Any]


class Against(NamedTuple):
    """The columns that need a baseline, and the point that is the baseline of each; -1 without."""

    columns: dict[str, Any]
    base: Codes


def against(
    groups: Grouped, study: ExpectedStudy, rates: Mapping[str, Floats], columns: Columns
) -> Against:
    """Return speedup, efficiency and what follows from them, from the columns of the points."""
    every = np.arange(groups.size)
    names = list(BASES)
    basis = np.array([names.index(name) for name in columns["basis"]], dtype=np.int64)
    sides = samples((rates[name] for name in names), groups.point, basis, study.interval)
    found = baselines(groups, study)
    base = refused(groups, found, sides.of(found.point).number, columns)
    confidence = float(columns["confidence"][0]) if groups.size else NAN
    q = ideal(groups, base.point)
    speedup = _one(sides.ratio(base.point, confidence), base.point == every)
    mixed = np.array([regime == "mixed" for regime in columns["regime"]], dtype=bool)
    half = np.where(mixed, -1, halves(groups))
    doubled = sides.ratio(half, confidence)
    added: dict[str, Any] = {
        "is_baseline": base.point == every,
        "ideal": q,
        "note": base.note,
        "usable": sides.of(every).number,
        "base_usable": sides.of(base.point).number,
        "cv": _variation(groups, rates, basis),
        "accuracy_change_pp": _change(columns["accuracy"], base.point),
        **limited("speedup", speedup),
        **limited("efficiency", shared(speedup, q)),
        **limited("doubling", Limits(*(_halved(limit) for limit in doubled))),
        **limited("karp_flatt", _karp_flatt(speedup, q)),
    }
    timed = sides._replace(basis=np.full(groups.size, names.index(TO_TRAIN)))
    train = _to_train(groups, study, timed, confidence)
    few = np.fmin(sides.fewest((base.point, half)), train.pop("fewest"))
    added["fewest"] = few if study.interval == "bootstrap" else np.full(groups.size, NAN)
    added["ideal"] = np.where(np.isnan(q), train.pop("q"), q)
    added["is_baseline"] |= mixed & train.pop("first")
    return Against(added | train, base.point)


def ideal(groups: Grouped, base: Codes) -> Floats:
    """Return q, the ratio of GPUs; else of ranks, else of nodes; NaN if none is known."""
    q = np.full(groups.size, NAN)
    gpus, ranks, nodes = (column[groups.first] for column in sizes_of(groups.runs))
    for size in (nodes, ranks, gpus):
        first = _pick(size, base)
        known = (size > 0) & (first > 0)
        q[known] = size[known] / first[known]
    return q


def _to_train(
    groups: Grouped, study: ExpectedStudy, times: Samples, confidence: float
) -> dict[str, Any]:
    """Return T(p0)/T(p) of the times to train, also where the batch is not the same.

    (As in MLPerf, which compares the times at which the target was reached.)
    """
    every = np.arange(groups.size)
    base = baselines(groups, study, "series_comparable").point
    timed = times.of(base).number > 0
    ratio = _one(times.ratio(base, confidence), (base == every) & timed)
    known = ~np.isnan(ratio.value)
    q = np.where(known, ideal(groups, base), NAN)
    return {
        "q": q,
        "fewest": times.fewest((base,)),
        "first": (base == every) & known,
        **limited("time_to_train_speedup", ratio),
        **limited("time_to_train_efficiency", shared(ratio, q)),
    }


def _one(ratio: Limits, first: Bools) -> Limits:
    """Set a baseline to 1 exactly: the ratio of a number to itself has no interval."""
    limits = (np.where(first, NAN, ratio.low), np.where(first, NAN, ratio.high))
    return Limits(np.where(first, 1.0, ratio.value), *limits)


def _karp_flatt(speedup: Limits, q: Floats) -> Limits:
    beyond = np.where(q > 1, q, NAN)
    value, high, low = (karp_flatt(_finite(limit), beyond) for limit in speedup)
    return Limits(value, low, high)


def _halved(doubled: Floats) -> Floats:
    return doubling_efficiency(np.ones_like(doubled), _finite(doubled))


def _finite(limit: Floats) -> Floats:
    """Return a limit, NaN where it is beyond all numbers."""
    return np.where(np.isfinite(limit) & (limit > 0), limit, NAN)


def _variation(groups: Grouped, rates: Mapping[str, Floats], basis: Codes) -> Floats:
    each = [variation(moments(own, groups.point, groups.size)) for own in rates.values()]
    return np.choose(basis, each)


def _change(accuracy: Floats, base: Codes) -> Floats:
    return 100 * (accuracy - _pick(accuracy, base))


def _pick(values: Floats, points: Codes) -> Floats:
    return np.append(values, NAN)[points]
