"""Runs of a study -> what their nodes, their times and their rates say against its ratios.

- Points that are compared, each on one set of nodes, without a common node: a difference between
  nodes looks like scaling. Nodes at random explain it in less than 5 % of studies.
- Series whose sizes each ran in a session of their own: a change of the machine looks like scaling.
- Runs far slower than the others of their point: something happened to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import comb
from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.scaling.comparison import matched
from hpc_train.scaling.group_reductions import Mask, numbers
from hpc_train.scaling.points import KEY, Grouped, bases_of, grouped, rates_by
from hpc_train.scaling.runs import OK

# The probability that compared points of equal nodes are named.
LEVEL = 0.05
# A slow run is so many standard deviations below the median of its point; the second number makes
# one of a median deviation. It took at least so many times as long as that median.
FAR, NORMAL, LEAST_TIMES = 6.0, 1.4826, 1.1
_LEAST_RUNS = 3
Nodes = frozenset[str]


class ApartPoints(NamedTuple):
    """A point, and one it is compared with, as rows of points, and the nodes of each."""

    point: int
    other: int
    nodes: tuple[str, ...]
    others: tuple[str, ...]


class SlowRun(NamedTuple):
    """A run, its point as a row of points with so many runs, and how much longer it took.

    `times` as long as the median of the point.
    """

    run_id: str
    point: int
    runs: int
    times: float


def apart_points(runs: pd.DataFrame, points: pd.DataFrame) -> tuple[ApartPoints, ...]:
    """Return the points on other nodes than those they are compared with.

    From rows of `run_frame` and `speedup_frame`. A point counts if the nodes of all its ok runs are
    known. It is compared with the baseline of its series, and with the point of its size in the
    first series.
    """
    sets = [_nodes(text) for text in runs["node_list"]] if "node_list" in runs else []
    if not any(sets):
        return ()
    groups = grouped(runs)
    own: dict[int, list[Nodes]] = {}
    for run in np.flatnonzero(groups.ok).tolist():
        own.setdefault(int(groups.point[run]), []).append(sets[run])
    return tuple(_apart(_point_nodes(own), _compared(points)))


def apart_sides(a: pd.DataFrame, b: pd.DataFrame) -> tuple[ApartPoints, ...]:
    """Return the points of a comparison whose two sides have no common node, as its rows."""
    sides = matched(a, b)
    runs = sides.runs[sides.runs["state"] == OK]
    names = runs["node_list"] if "node_list" in runs else [""] * len(runs)
    own: dict[int, list[Nodes]] = {}
    for point, text in zip(runs["point"].tolist(), names, strict=True):
        own.setdefault(point, []).append(_nodes(text))
    pairs = [(2 * row, 2 * row + 1) for row in range(len(sides.rows))]
    return tuple(
        one._replace(point=one.point // 2, other=one.other // 2)
        for one in _apart(_point_nodes(own), pairs)
    )


def _nodes(text: object) -> Nodes:
    return frozenset(text.split(",")) if isinstance(text, str) and text else Nodes()


def _apart(
    found: Mapping[int, tuple[Nodes, float]], compared: Iterable[tuple[int, int]]
) -> Iterator[ApartPoints]:
    """Yield the compared points without a common node, if nodes at random do not explain it.

    They count if the runs of one or both are on one set of nodes.
    """
    pairs = [(a, b) for a, b in compared if a in found and b in found]
    for point, other in pairs:
        (own, chance), (others, of_others) = found[point], found[other]
        # A quarter of the level, for sets of one point and of both points are two tests.
        if chance * of_others * len(pairs) <= LEVEL / 4 and not own & others:
            yield ApartPoints(point, other, tuple(sorted(own)), tuple(sorted(others)))


def _point_nodes(own: Mapping[int, Sequence[Nodes]]) -> dict[int, tuple[Nodes, float]]:
    """Return the nodes of each point whose ok runs all have known nodes, and a probability: that
    all its runs got one set by chance; 1 if they are on several sets.

    n runs on k of N nodes are all on one set with probability C(N, k)^-(n-1). N counts the nodes
    that the study used; further nodes make the probability smaller.
    """
    known = {point: of for point, of in own.items() if all(of)}
    most = len(Nodes().union(*chain.from_iterable(known.values())))
    return {
        point: (
            Nodes().union(*of),
            1 / comb(most, len(of[0])) ** (len(of) - 1) if len(set(of)) == 1 else 1.0,
        )
        for point, of in known.items()
    }


def _compared(points: pd.DataFrame) -> Iterator[tuple[int, int]]:
    """Yield the rows of points that are compared: with the baseline, and with another series."""
    names = [str(name) for name in points["series"]]
    bases: dict[str, int] = {}
    for place in np.flatnonzero(points["is_baseline"].to_numpy(dtype=bool)).tolist():
        bases.setdefault(names[place], place)
    first: dict[tuple[float, ...], int] = {}
    sizes = points[KEY[1:]].astype("Float64").fillna(-1).to_numpy(dtype=np.float64)
    for place, (name, size) in enumerate(zip(names, map(tuple, sizes.tolist()), strict=True)):
        others = (bases.get(name, place), first.setdefault(size, place))
        yield from ((place, other) for other in dict.fromkeys(others) if other != place)


def in_one_session(runs: pd.DataFrame, groups: Grouped) -> Mask:
    """Return which points belong to a series whose points each ran in a session of their own."""
    found = one_session(runs, groups)
    chosen = np.array([label in found for label in groups.labels], dtype=bool)
    return chosen[groups.of_point] if groups.size else np.zeros(0, dtype=bool)


def one_session(runs: pd.DataFrame, groups: Grouped) -> tuple[str, ...]:
    """Return the series whose points, all repeated, ran in times that do not overlap.

    None if another repeated series ran in turns: then the order was random, and this one is chance.
    None either if the start of an ok run is not known.
    """
    started = numbers(runs, "started")
    if np.isnan(started[(runs["state"] == OK).to_numpy(dtype=bool)]).any():
        return ()
    ended = started + np.nan_to_num(groups.ok_only("wall_s"))
    found, in_turns = [], False
    times = pd.DataFrame({"point": groups.point, "started": started, "ended": ended})
    for number, label in enumerate(groups.labels):
        own = times[groups.ok & (groups.series == number)].groupby("point")
        if own.ngroups < 2 or own.size().min() < 2:
            continue
        spans = pd.DataFrame({"first": own["started"].min(), "last": own["ended"].max()})
        spans = spans.sort_values("first")
        if (spans["first"].iloc[1:].to_numpy() >= spans["last"].iloc[:-1].to_numpy()).all():
            found.append(label)
        else:
            in_turns = True
    return () if in_turns else tuple(found)


def slow_runs(runs: pd.DataFrame) -> tuple[SlowRun, ...]:
    """Return the runs far slower than the others of their point, the slowest first.

    From rows of `run_frame`; points of fewer than three runs do not count. The spread is that of
    the median deviation, which slow runs do not change: of all points or of its own, whichever is
    larger. Of simulated studies of 3 to 20 repetitions without a slow run, at most 5 % have one.
    """
    groups = grouped(runs)
    rates = rates_by(groups, bases_of(groups), np.ones(groups.size))
    logs = np.asarray(np.log(rates), dtype=np.float64)
    count = np.bincount(groups.point[~np.isnan(logs)], minlength=groups.size)
    used = np.flatnonzero(~np.isnan(logs) & (count[groups.point] >= _LEAST_RUNS))
    if not len(used):
        return ()
    point, logs = groups.point[used], logs[used]
    below = pd.Series(logs).groupby(point).transform("median").to_numpy() - logs
    apart = pd.Series(np.abs(below))
    own = apart.groupby(point).transform("median").to_numpy()
    # A median of n values lies nearer to them than the middle of the distribution does.
    few = np.sqrt(count[point] / (count[point] - 1))
    spread = NORMAL * few * np.maximum(own, apart.median())
    slow = np.flatnonzero((below > FAR * spread) & (below >= np.log(LEAST_TIMES)))
    names = runs["run_id"].to_numpy()[used]
    return tuple(
        SlowRun(str(names[own]), int(point[own]), int(count[point[own]]), float(np.exp(below[own])))
        for own in slow[np.argsort(-below[slow], kind="stable")].tolist()
    )
