"""Points -> their flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from hpc_train.model.metrics import BASIS_COLUMNS
from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.tables.confidence_intervals import (
    CONFIDENCE,
    LEAST_FOR_MEAN,
    corrected,
    noise_limit,
)
from hpc_train.tables.group_reductions import Moments, moments
from hpc_train.tables.points import Grouped
from hpc_train.tables.record_arrays import Ints

_OUTCOMES = (FlagCode.ACCURACY, FlagCode.LOSS)
# Same tolerance as the gate: a point that meets it is not flagged.
_ROUNDING = 1e-9
# Caches and memory explain less: superlinear speedups in the literature are below 1.3.
IMPLAUSIBLE_EFFICIENCY = 1.5
# Rounding of the mean of equal values.
_SAME_VALUE = 1e-12


_ONE_SESSION = Flag(
    FlagCode.ONE_SESSION,
    "no interval; each size ran at a time of its own, and a change of the machine in between looks "
    "like scaling; run the sizes in turns, as submit does",
)


class _Sample(NamedTuple):
    """The ok runs of a point with a value: number, mean and variance."""

    n: float
    mean: float
    variance: float


def point_flags(
    groups: Grouped, columns: Mapping[str, Any], base: Ints, gate: float | None
) -> list[tuple[Flag, ...]]:
    """Return the flags of each point from its columns; `base` is its baseline.

    Additional columns are `usable` and `base_usable`, the numbers of runs of the point and of its
    baseline with the basis, `fewest`, the smallest number of runs of a resampled interval, and
    `in_one_session` of `tables.caveats`.
    """
    names = ("n_ok", "usable", "base_usable", "basis", "is_baseline", "whole_seconds",
             "efficiency", "efficiency_low", "samples_seen", "fewest",
             "in_one_session")  # fmt: skip
    lists = [np.asarray(columns[name]).tolist() for name in names]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
    seen = _of_runs(groups)
    outcomes = _outcomes(groups, rows, base)
    times = {basis: _samples(groups, name) for basis, name in BASIS_COLUMNS.items()}
    flags = []
    for point, (row, first) in enumerate(zip(rows, base.tolist(), strict=True)):
        own = [*_alone(row, seen[point]), *_equal(times[row["basis"]][point]), *_ratio(row, gate)]
        if first >= 0 and not row["is_baseline"]:
            if row["n_ok"] > 1 and row["base_usable"] == 1:
                own.append(Flag(FlagCode.ONE_BASELINE_RUN, "no interval"))
            if row["in_one_session"]:
                own.append(_ONE_SESSION)
            own += outcomes.get(point, [])
            if row["whole_seconds"]:
                of_basis = times[row["basis"]]
                own += _whole_seconds(of_basis[point].mean, of_basis[first].mean)
        flags.append(tuple(own))
    return flags


def _samples(groups: Grouped, name: str) -> list[_Sample]:
    found: Moments = moments(groups.ok_only(name), groups.point, groups.size)
    return [_Sample(*each) for each in zip(*(column.tolist() for column in found), strict=True)]


def _of_runs(groups: Grouped) -> list[set[Flag]]:
    """Return the flags of each point's ok runs, and of those without a result for their unit."""
    seen: list[set[Flag]] = [set() for _ in range(groups.size)]
    runs = zip(groups.point.tolist(), groups.ok.tolist(), groups.runs["flags"], strict=True)
    for point, ok, flags in runs:
        if flags and (ok or any(flag.code == FlagCode.UNIT for flag in flags)):
            seen[point].update(flags)
    return seen


def _alone(row: Mapping[str, Any], of_runs: set[Flag]) -> list[Flag]:
    flags = [Flag(FlagCode.ONE_RUN, "no interval")] if row["n_ok"] == 1 else []
    flags += sorted(of_runs)
    missing = row["n_ok"] - row["usable"]
    if missing:
        flags.append(Flag(FlagCode.UNMEASURED, f"{missing:g} without {row['basis']}"))
    return flags


def _equal(runs: _Sample) -> list[Flag]:
    """Flag repetitions without any spread: copies, or values printed with too few digits."""
    if runs.n < 2 or runs.variance > (_SAME_VALUE * runs.mean) ** 2:
        return []
    return [Flag(FlagCode.NO_SPREAD, f"{runs.n:g} equal values")]


def _ratio(row: Mapping[str, Any], gate: float | None) -> Sequence[Flag]:
    flags = []
    if row["fewest"] < LEAST_FOR_MEAN:
        detail = f"needs {LEAST_FOR_MEAN} runs, there are {row['fewest']:g}"
        flags.append(Flag(FlagCode.BOOTSTRAP, detail))
    # Without an interval, a value that the table shows as more than 1.
    low = row["efficiency_low"]
    if row["efficiency"] > IMPLAUSIBLE_EFFICIENCY:
        detail = f"{100 * row['efficiency']:.4g} %; check units, batch and baseline"
        flags.append(Flag(FlagCode.EFFICIENCY, detail))
    elif (round(row["efficiency"], 3) if isnan(low) else low) > 1:
        flags.append(Flag(FlagCode.SUPERLINEAR, "check cache, batch, clocks"))
    if gate is not None and row["efficiency"] < gate - _ROUNDING:
        flags.append(Flag(FlagCode.GATE, f"efficiency {row['efficiency']:.3f} < {gate:g}"))
    return flags


def _same_samples(row: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Whether both processed the same number of samples, because the loss depends on it."""
    own, first = row["samples_seen"], base["samples_seen"]
    return bool(abs(own - first) <= 0.01 * first)


def _outcomes(
    groups: Grouped, rows: Sequence[Mapping[str, Any]], base: Ints
) -> dict[int, list[Flag]]:
    """Return a flag for each accuracy and loss that noise does not explain, by point.

    Each point is compared with its baseline by Student's t. The level is corrected for the number
    of tests in the whole table, so that at most one study in twenty has a false flag.
    """
    compared = (base >= 0) & ~np.array([row["is_baseline"] for row in rows], dtype=bool)
    same = compared.copy()
    for point in np.flatnonzero(compared).tolist():
        same[point] = _same_samples(rows[point], rows[base[point]])
    tests = []
    for code, tested in zip(_OUTCOMES, (compared, same), strict=True):
        own = moments(groups.ok_only(code.value), groups.point, groups.size)
        first = own.of(base)
        # Repetitions of one seed can agree to the last digit; then the noise was not measured.
        measured = tested & ~np.isnan(noise_limit(own, first, CONFIDENCE))
        tests.append((code, own, first, measured))
    level = corrected(CONFIDENCE, sum(int(measured.sum()) for *_, measured in tests))
    found: dict[int, list[Flag]] = {}
    for code, own, first, measured in tests:
        limit, change = noise_limit(own, first, level), own.mean - first.mean
        for point in np.flatnonzero(measured & (np.abs(change) > limit)).tolist():
            flag = _changed(code, float(change[point]), float(limit[point]))
            found.setdefault(point, []).append(flag)
    return found


def _changed(code: FlagCode, change: float, limit: float) -> Flag:
    if code == FlagCode.ACCURACY:
        return Flag(code, f"{100 * change:+.2f} points, noise explains {100 * limit:.2f}")
    return Flag(code, f"{change:+.4g}, noise explains {limit:.2g}")


def _whole_seconds(own: float, first: float) -> list[Flag]:
    """Bound the speedup when both times were cut to whole seconds: each is up to 1 s longer."""
    if isnan(first):
        return []
    if not own > 0:
        return [Flag(FlagCode.WHOLE_SECONDS, "a time of 0 s is less than 1 s")]
    low, high = first / (own + 1), (first + 1) / own
    return [Flag(FlagCode.WHOLE_SECONDS, f"true speedup between {low:.2f} and {high:.2f}")]
