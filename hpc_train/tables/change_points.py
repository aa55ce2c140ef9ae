"""A series of values over time -> the places at which its level changed.

Exact least squares by dynamic programming ("segment neighbourhood": I. E. Auger and C. E. Lawrence,
Bulletin of Mathematical Biology 51, 1989), the model of a piecewise constant level with one
unknown variance. asv fits the same model, with a penalty (`asv.step_detect`). Here F tests decide
on the number of changes, because a history is short: the variance of ten values is poorly known,
and the tests allow for that. No random numbers are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpc_train.model.track import LEAST_ENTRIES, Change
from hpc_train.tables.confidence_intervals import CONFIDENCE, students_t
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.probability_distributions import f_above, student_below

# Level of each test. With it, 4 % of the histories of 50 equal entries have a step downwards at any
# of 50 checks, one after each entry (4000 simulated histories; a test simulates 600).
LEVEL = 3e-4
# Smallest standard deviation of the logarithm of an entry: digits of logs are rounded, and equal
# entries do not prove that the next one is equal.
LEAST_NOISE = 1e-3
# More values than these need too much memory: only the newest are searched.
MOST = 2000


class _Fit(NamedTuple):
    """The best division: sums of squares up to each value, and the start of its last segment."""

    cost: Floats
    start: np.ndarray[tuple[int], np.dtype[np.int64]]


def changes(values: Sequence[float], level: float = LEVEL) -> list[Change]:
    """Return the changes of level of positive values, oldest first.

    A further change is accepted if an F test of the sums of squares has p < `level`; two changes
    together (a few values that are lower than those before and after) if p < level/n. Logarithms
    are used, so that a step is a ratio.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))[-MOST:]
    if len(logs) < LEAST_ENTRIES:
        return []
    ends = _divided(logs, level)
    return _described(logs, ends, len(values) - len(logs))


def _divided(logs: Floats, level: float) -> list[int]:
    """Return the first place of each segment but the first."""
    costs, size = _costs(logs), len(logs)
    fits = [_Fit(costs[0], np.zeros(size, dtype=np.int64))]
    count = 0
    while True:
        for more in (1, 2):
            # Two degrees of freedom at least: one difference is no measure of noise.
            if size - count - more - 1 < 2:
                return _starts(fits, count)
            while len(fits) <= count + more:
                fits.append(_one_more(fits[-1], costs))
            p = _p(fits[count].cost[-1], fits[count + more].cost[-1], more, size - count - more - 1)
            if p < (level if more == 1 else level / size):
                count += more
                break
        else:
            return _starts(fits, count)


def _costs(logs: Floats) -> Floats:
    """Return the sum of squares around the mean of values i to j, infinite for j < i."""
    centred = logs - logs.mean()
    total = np.concatenate([[0.0], np.cumsum(centred)])
    square = np.concatenate([[0.0], np.cumsum(centred**2)])
    first, last = np.arange(len(logs))[:, None], np.arange(len(logs))[None, :] + 1
    number = np.where(last > first, last - first, 1)
    sums = square[last] - square[first] - (total[last] - total[first]) ** 2 / number
    costs: Floats = np.where(last > first, np.maximum(sums, 0.0), np.inf)
    return costs


def _one_more(fit: _Fit, costs: Floats) -> _Fit:
    before = np.concatenate([[np.inf], fit.cost[:-1]])
    sums = before[:, None] + costs
    start = sums.argmin(axis=0)
    return _Fit(sums[start, np.arange(len(start))], start)


def _starts(fits: Sequence[_Fit], count: int) -> list[int]:
    found, end = [], len(fits[0].cost)
    for fit in reversed(fits[1 : count + 1]):
        end = int(fit.start[end - 1])
        found.append(end)
    return found[::-1]


def _p(without: float, with_: float, more: int, freedom: int) -> float:
    """Return the p value of the F test of `more` further changes."""
    noise = max(with_ / freedom, LEAST_NOISE**2)
    return f_above(more, freedom, (without - with_) / more / noise)


def _described(logs: Floats, at: Sequence[int], before: int) -> list[Change]:
    """Return the changes with intervals: Student's t, one variance for all segments."""
    parts = np.split(logs, at)
    pairs = zip(parts, parts[1:], at, strict=False)
    return [_step((old, new), parts, place + before) for old, new, place in pairs]


def newest_step(values: Sequence[float], found: Sequence[Change]) -> Change | None:
    """Return the step to the newest level, from the level before it; None without a change.

    After several losses in a row it is the step from the level before the first of them: small
    losses would otherwise hide a large one. `found` are the changes of `values`.
    """
    if not found:
        return None
    first = len(found) - 1
    while first > 0 and found[first].ratio < 1 and found[first - 1].ratio < 1:
        first -= 1
    logs = np.log(np.asarray(values, dtype=np.float64))
    skipped = max(len(logs) - MOST, 0)
    parts = np.split(logs[skipped:], [change.at - skipped for change in found])
    return _step((parts[first], parts[-1]), parts, found[first].at)


def _step(pair: tuple[Floats, Floats], parts: Sequence[Floats], at: int) -> Change:
    """Return the step between two of the segments."""
    old, new = pair
    freedom = sum(map(len, parts)) - len(parts)
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    noise = max(squares / freedom, LEAST_NOISE**2)
    step = float(new.mean() - old.mean())
    error = float(np.sqrt(noise * (1 / len(old) + 1 / len(new))))
    half = float(students_t(freedom, CONFIDENCE)) * error
    ratio, low, high = (float(np.exp(step + side * half)) for side in (0, -1, 1))
    p = 2 * student_below(freedom, -abs(step) / error)
    return Change(at=at, ratio=ratio, low=low, high=high, p=p)
