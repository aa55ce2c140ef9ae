"""Run table -> at each size the fastest series, and its ratio to every other series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.metrics import BASIS_COLUMNS
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.baselines import comparable_series, with_several
from hpc_train.scaling.comparison import NO_SPREAD, ONE_RUN
from hpc_train.scaling.confidence_intervals import (
    ROUNDING,
    IntervalArrays,
    block_codes,
    differences,
    step_down,
    welch,
)
from hpc_train.scaling.group_reductions import Floats, Ints, Mask, codes, moments
from hpc_train.scaling.points import KEY, grouped, rates_by, sizes_of
from hpc_train.scaling.report_options import CONFIDENCE

SIZES = KEY[1:]
FASTER, UNDECIDED = "faster", "no difference seen at this n"
NO_RESULT, ALONE = "no result", "no other series at this size"
COLUMNS = (
    *SIZES, "group", "basis", "fastest", "value", "n", "series", "other_value", "other_n", "not_ok",
    "ratio", "ratio_low", "ratio_high", "level", "comparisons", "verdict",
)  # fmt: skip


class _Pairs(NamedTuple):
    """The fastest point of each size, and one other; the same if there is no other."""

    fastest: Ints
    other: Ints


def fastest_frame(
    runs: pd.DataFrame, points: pd.DataFrame, study: ExpectedStudy, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """Return a row for each size and each series that is compared there with the fastest one.

    `points` are the rows that `speedup_frame` makes of `runs`. Series are compared if they did the
    same work (`comparable_series`); `group` is the number of their class, and a class of one series
    has no row. ratio = X(fastest)/X(other) of geometric means over runs (for times T(other)/
    T(fastest)), with Welch's interval on logarithms, or Student's of the differences where the
    runs of both form pairs (`differences`).

    The fastest series is known only from the data, so that every pair of series with an interval
    counts as one of the `comparisons` of Holm's step-down (`step_down`; for all pairs: Y. Hochberg
    and A. C. Tamhane, Multiple Comparison Procedures, Wiley 1987); `level` is that of the interval.
    `verdict` is `faster` if `ratio_low` is above 1. Times that were cut to whole seconds are each
    up to 1 s longer, and the interval allows for that.
    """
    groups = grouped(runs)
    columns = {name: points[name].tolist() for name in ("basis", "regime")}
    group = comparable_series(groups, study, columns)
    logs = np.log(rates_by(groups, columns["basis"], points["work"].to_numpy(dtype=np.float64)))
    own = moments(logs, groups.point, groups.size)
    size = _same_size(points, group, with_several(groups, group, own.mean))
    pairs = _pairs(size, own.mean)
    # By class, then the smallest size first.
    keys = (*reversed(sizes_of(points)), group)
    order = np.lexsort([key[pairs.fastest] for key in keys])
    pairs = _Pairs(*(side[order] for side in pairs))
    several = _comparisons(pairs, own.number)
    fastest = np.full(groups.size, -1, dtype=np.int64)
    fastest[pairs.other] = pairs.fastest
    within = differences(logs, groups.point, block_codes(groups.runs), fastest).inverse()
    value = [float(points[BASIS_COLUMNS[columns["basis"][at]]].iloc[at]) for at in pairs.fastest]
    cut = points["whole_seconds"].to_numpy(dtype=bool)[pairs.fastest]
    # The time of the fastest series may have been cut by almost a second.
    longest = np.where(cut, 1 + 1 / np.array(value), 1.0)

    def limits(level: Floats) -> IntervalArrays:
        apart = welch(own.of(pairs.fastest), own.of(pairs.other), level)
        ratio, low, high = within.of(pairs.other).instead_of(apart, level)
        return IntervalArrays(ratio, low / longest, high)

    found = step_down(limits, len(cut), several, confidence)
    rows = _rows(points.assign(group=group), pairs, own.number, found)
    table: pd.DataFrame = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    table["comparisons"] = several
    return table


def _same_size(points: pd.DataFrame, group: Ints, several: Mask) -> Ints:
    """Number the sizes of each class with several series; -1 for others and for unknown sizes.

    A point with another global batch has a size of its own.
    """
    known = points[["nodes", "ranks", "gpus"]].notna().any(axis=1).to_numpy(dtype=bool)
    place = codes([pd.Series(group), *(points[name] for name in SIZES)])
    batch = points["global_batch"].astype("float64")
    # A batch that is not recorded is the usual one of its size.
    usual = batch.fillna(batch.groupby(place).transform("first"))
    return np.where(several & known, codes([pd.Series(place), usual]), -1)


def _pairs(size: Ints, speed: Floats) -> _Pairs:
    """Pair the fastest point of each size with each other point, the faster ones first."""
    slowest_last = -np.where(np.isnan(speed), -np.inf, speed)
    order = np.lexsort((slowest_last, size))
    order = order[size[order] >= 0]
    _, first, count = np.unique(size[order], return_index=True, return_counts=True)
    fastest = np.repeat(order[first], count)
    # A point that is alone is paired with itself.
    keep = (fastest != order) | (np.repeat(count, count) == 1)
    keep &= ~np.isnan(speed[fastest])
    return _Pairs(fastest[keep], order[keep])


def _comparisons(pairs: _Pairs, number: Floats) -> int:
    """Return the number of pairs of series that both have an interval, at all sizes."""
    apart = pairs.fastest != pairs.other
    repeated = np.bincount(
        pairs.fastest[apart], number[pairs.other[apart]] > 1, minlength=len(number)
    )
    repeated[np.unique(pairs.fastest)] += number[np.unique(pairs.fastest)] > 1
    return int((repeated * (repeated - 1) // 2).sum())


def _rows(
    points: pd.DataFrame, pairs: _Pairs, number: Floats, found: tuple[IntervalArrays, Floats]
) -> Iterator[dict[str, Any]]:
    used = [*SIZES, "group", "basis", "series", "not_ok"]
    values = [name for name in dict.fromkeys(BASIS_COLUMNS.values()) if name in points]
    each = points[[*used, *values]].to_dict("records")
    for fastest, other, *limits in zip(
        pairs.fastest.tolist(), pairs.other.tolist(), *found[0], found[1], strict=True
    ):
        one, two = each[fastest], each[other]
        column = BASIS_COLUMNS[one["basis"]]
        row = {name: one[name] for name in (*SIZES, "group", "basis")}
        row |= {"fastest": one["series"], "value": float(one[column]), "n": int(number[fastest])}
        if one is two:
            yield row | {"series": None, "verdict": ALONE}
            continue
        row |= {"series": two["series"], "other_value": float(two[column])}
        row |= {"other_n": int(number[other]), "not_ok": two["not_ok"]}
        row |= dict(zip(("ratio", "ratio_low", "ratio_high", "level"), limits, strict=True))
        yield row | {"verdict": _verdict(limits[1], row)}


def _verdict(low: float, row: dict[str, Any]) -> str:
    if not row["other_n"]:
        return NO_RESULT
    if np.isnan(low):
        return ONE_RUN if min(row["n"], row["other_n"]) == 1 else NO_SPREAD
    return FASTER if low > 1 + ROUNDING else UNDECIDED
