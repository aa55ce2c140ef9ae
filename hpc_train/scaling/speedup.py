"""Run table -> one row per point with speedup and efficiency against its baseline."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.metrics import BASES, BASIS_COLUMNS, POINT_METRICS
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.caveats import in_one_session
from hpc_train.scaling.measurements import Flag, FlagCode
from hpc_train.scaling.points import (
    CONFIDENCE,
    KEY,
    Differences,
    Grouped,
    IntervalArrays,
    bases_of,
    block_codes,
    corrected,
    cost_columns,
    differences,
    divided,
    grouped,
    limited,
    noise_limit,
    point_columns,
    rates_by,
    welch,
)
from hpc_train.scaling.record_arrays import NAN, Floats, Ints, Moments, bounded, moments
from hpc_train.scaling.split_series import baselines, halves, refused, regimes, work_units

COUNTS = (
    *KEY[1:], "cpus_per_task", "n_ok", "n_submitted",
    *(metric.key for metric in POINT_METRICS if metric.counts),
)  # fmt: skip
# The batch size precedes the number of runs, as in the points table.
_BATCH, *_OTHERS = (
    f"{metric.key}{limit}"
    for metric in POINT_METRICS
    for limit in (("", "_low", "_high") if metric.limits else ("",))
)
COLUMNS = (
    *KEY, "cpus_per_task", "regime", "basis", "assumption", "looks_weak", "work", "is_baseline",
    "is_paired", _BATCH, "n_ok", "n_submitted",
    "not_ok", *_OTHERS, "whole_seconds", "transport", "confidence", "flags", "note",
)  # fmt: skip
FLOATS = tuple(name for name in (_BATCH, *_OTHERS, "confidence") if name not in COUNTS)
PointArrays = Mapping[str, Any]


def speedup_frame(
    runs: pd.DataFrame, study: ExpectedStudy, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """Return one row per point (series, nodes, GPUs and tasks per node), from `run_frame`'s rows.

    speedup S = t(p0)/t(p), t the time of a unit of work: 1/X of a throughput X, else the epoch
    time, the step time or the time to train, of which `work` units are done (`work_units`). ideal
    q = ratio of GPUs, of ranks where there are none; efficiency E = S/q, for strong and weak
    scaling alike. The baseline is 1 exactly, without an interval. Where the baseline has no ok run,
    or the regime is mixed, S and E are NaN and `note` says why; but where each ok run of a mixed
    series has its time to train, that is t. `doubling` S(2p)/(2 S(p))
    is a direct ratio of two points, the point of half the size being of the same series.

    Raises:
        ReportError: the recorded batches contradict `study.scaling`.
    """
    groups = grouped(runs)
    found = regimes(groups.runs, study.scaling)
    basis = bases_of(groups, {label for label, regime in found.items() if regime == "mixed"})
    units = work_units(groups, basis, study.scaling, study.assumed)
    columns = {**point_columns(groups, confidence), "basis": basis, **units}
    columns |= cost_columns(groups, basis, columns)
    times = [not BASES[name].is_rate for name in basis]
    columns["whole_seconds"] &= np.array(times, dtype=bool)
    columns["confidence"] = np.full(groups.size, confidence)
    added, base = against(groups, study, columns)
    columns |= added
    columns["flags"] = point_flags(groups, columns, base, study.gates.efficiency)
    return _typed(columns)


def _typed(columns: dict[str, Any]) -> pd.DataFrame:
    types = {**dict.fromkeys(COUNTS, "Int64"), **dict.fromkeys(FLOATS, "float64")}
    types["flags"] = "object"
    return pd.DataFrame({name: pd.Series(columns[name], dtype=types.get(name)) for name in COLUMNS})


def against(
    groups: Grouped, study: ExpectedStudy, columns: PointArrays
) -> tuple[dict[str, Any], Ints]:
    """Return the columns that need a baseline, and the point that is the baseline of each.

    `columns` are those of the points; -1 is no baseline.
    """
    every = np.arange(groups.size)
    rates = rates_by(groups, columns["basis"], columns["work"])
    kind = pd.factorize(np.array(columns["basis"], dtype=object))[0].astype(np.int64)
    logs = moments(np.log(rates), groups.point, groups.size)
    sides = Samples(rates, groups.point, block_codes(groups.runs), kind, logs)
    found = baselines(groups, study)
    base = refused(groups, found, sides.of(found.point).number, columns)
    # Runs of one session do not show the differences between sessions.
    level = np.where(in_one_session(groups.runs, groups), NAN, columns["confidence"])
    q = ideal(groups, base.point)
    # The ratio of a number to itself is 1, and has no interval.
    value, *limits = sides.ratio(base.point, level)
    first = base.point == every
    limits = [np.where(first, NAN, limit) for limit in limits]
    speedup = IntervalArrays(np.where(first, 1.0, value), *limits)
    mixed = np.array([regime == "mixed" for regime in columns["regime"]], dtype=bool)
    serial = [karp_flatt(limit, np.where(mixed, NAN, q)) for limit in speedup]
    half = np.where(mixed, -1, halves(groups))
    doubled = sides.ratio(half, level)
    own = moments(rates, groups.point, groups.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        cv = np.sqrt(own.variance) / own.mean
    added: dict[str, Any] = {
        "is_baseline": first,
        "in_one_session": np.isnan(level),
        "is_paired": sides.pairs(np.where(first, -1, base.point)).complete,
        "ideal": q,
        "note": base.note,
        "usable": sides.moments.number,
        "base_usable": sides.of(base.point).number,
        "cv": cv,
        "accuracy_change_pp": 100 * (columns["accuracy"] - _pick(columns["accuracy"], base.point)),
        **limited("speedup", speedup),
        **limited("efficiency", divided(speedup, q)),
        # The efficiency of a doubling, S(2p)/(2 S(p)); CSC requires 0.75.
        **limited("doubling", divided(doubled, np.float64(2))),
        **limited("karp_flatt", IntervalArrays(serial[0], serial[2], serial[1])),
    }
    return added, base.point


def ideal(groups: Grouped, base: Ints) -> Floats:
    """Return q, the ratio of GPUs; else of ranks, else of nodes; NaN if none is known."""
    q = np.full(groups.size, NAN)
    gpus, ranks, nodes = groups.sizes
    for size in (nodes, ranks, gpus):
        first = _pick(size, base)
        known = (size > 0) & (first > 0)
        q[known] = size[known] / first[known]
    return q


@bounded
def karp_flatt(speedup: Floats, q: Floats) -> Floats:
    """Return e = (1/S - 1/q)/(1 - 1/q), the experimental serial fraction; NaN unless q > 1.

    (A. H. Karp and H. P. Flatt, CACM 33(5), 1990.) A constant e indicates serial work, an e that
    rises with q overhead. It is below 0 where the speedup is above q.
    """
    beyond = np.where(q > 1, q, NAN)
    # Multiplied by S q: near the ideal speedup the difference of two inverses loses all digits.
    return (beyond - speedup) / (speedup * (beyond - 1))


def _pick(values: Floats, points: Ints) -> Floats:
    return np.append(values, NAN)[points]


class Samples(NamedTuple):
    """The rates and the points of the runs; `kind` and `moments` have a value for each point.

    The moments are those of logarithms. Points of another kind of rate are not compared. `block` is
    the block of each run, -1 if it is not known.
    """

    rates: Floats
    point: Ints
    block: Ints
    kind: Ints
    moments: Moments

    def of(self, points: Ints) -> Moments:
        """Return the samples of other points."""
        same = np.append(self.kind, -1)[points] == self.kind
        return self.moments.of(np.where(same, points, -1))

    def ratio(self, other: Ints, level: Floats) -> IntervalArrays:
        """Return how many times as fast each point is as the corresponding other point.

        `level` is the level of each interval, NaN for none.
        """
        independent = welch(self.moments, self.of(other), level)
        return self.pairs(other).instead_of(independent, level)

    def pairs(self, other: Ints) -> Differences:
        """Return the differences of each point from the other one within the blocks."""
        return differences(np.log(self.rates), self.point, self.block, other)


_OUTCOMES = (FlagCode.ACCURACY, FlagCode.LOSS)
# Same tolerance as the gate: a point that meets it is not flagged.
_ROUNDING = 1e-9
# Caches and memory explain less: superlinear speedups in the literature are below 1.3.
IMPLAUSIBLE_EFFICIENCY = 1.5
# Rounding of the mean of equal values.
_SAME_VALUE = 1e-12


# Noise of 40 % between steps raises their mean less above their median.
_SLOW_STEPS = 1.1
_ONE_SESSION = Flag(
    FlagCode.ONE_SESSION,
    "no interval; each size ran at another time, and a change of the machine between them looks "
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
    baseline with the basis, and `in_one_session` of `caveats`.
    """
    names = ("n_ok", "usable", "base_usable", "basis", "is_baseline", "whole_seconds", "speedup",
             "efficiency", "efficiency_low", "samples_seen", "in_one_session")  # fmt: skip
    lists = [np.asarray(columns[name]).tolist() for name in names]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
    outcomes = _outcomes(groups, rows, base)
    seen = _of_runs(groups)
    times = {}
    for basis, name in BASIS_COLUMNS.items():
        found = moments(groups.ok_only(name), groups.point, groups.size)
        times[basis] = [_Sample(*each) for each in np.transpose(found).tolist()]
    # How many times as long as the median step the mean step takes.
    mean, median = (
        moments(groups.ok_only(name), groups.point, groups.size).mean
        for name in ("step_time_mean_s", "step_time_s")
    )
    uneven = mean / median
    flags = []
    for point, (row, first) in enumerate(zip(rows, base.tolist(), strict=True)):
        own = [Flag(FlagCode.ONE_RUN, "no interval")] if row["n_ok"] == 1 else []
        own += sorted(seen[point])
        if missing := row["n_ok"] - row["usable"]:
            own.append(Flag(FlagCode.UNMEASURED, f"{missing:g} without {row['basis']}"))
        own += [*_equal(times[row["basis"]][point]), *_ratio(row, gate)]
        own += _slow_steps(row, uneven[point], uneven[first])
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


def _of_runs(groups: Grouped) -> list[set[Flag]]:
    """Return the flags of each point's ok runs, and of those without a result for their unit."""
    seen: list[set[Flag]] = [set() for _ in range(groups.size)]
    for point, ok, own in zip(groups.point, groups.ok, groups.runs["flags"], strict=True):
        if own and (ok or any(flag.code == FlagCode.UNIT for flag in own)):
            seen[point].update(own)
    return seen


def _slow_steps(row: Mapping[str, Any], uneven: float, first: float) -> list[Flag]:
    if not uneven > _SLOW_STEPS:
        return []
    detail = f"the mean step takes {uneven:.3g} times the median"
    if row["efficiency"] > 0 and not row["is_baseline"]:
        detail += f", and by the mean the speedup is {row['speedup'] * first / uneven:.2f}"
    return [Flag(FlagCode.SLOW_STEPS, detail)]


def _equal(runs: _Sample) -> list[Flag]:
    """Flag repetitions without any spread: copies, or values printed with too few digits."""
    if runs.n < 2 or runs.variance > (_SAME_VALUE * runs.mean) ** 2:
        return []
    return [Flag(FlagCode.NO_SPREAD, f"{runs.n:g} equal values")]


def _ratio(row: Mapping[str, Any], gate: float | None) -> Sequence[Flag]:
    flags = []
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
            text = f"{change[point]:+.4g}, noise explains {limit[point]:.2g}"
            if code == FlagCode.ACCURACY:
                points = 100 * change[point], 100 * limit[point]
                text = f"{points[0]:+.2f} points, noise explains {points[1]:.2f}"
            found.setdefault(point, []).append(Flag(code, text))
    return found


def _whole_seconds(own: float, first: float) -> list[Flag]:
    """Bound the speedup when both times were cut to whole seconds: each is up to 1 s longer."""
    if isnan(first):
        return []
    if not own > 0:
        return [Flag(FlagCode.WHOLE_SECONDS, "a time of 0 s is less than 1 s")]
    low, high = first / (own + 1), (first + 1) / own
    return [Flag(FlagCode.WHOLE_SECONDS, f"true speedup between {low:.2f} and {high:.2f}")]
