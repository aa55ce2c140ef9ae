"""Nodes and rates of the runs of a study -> what the nodes say of its ratios.

Nodes of one kind differ. Repetitions on several nodes have that difference in their spread; those
of a point that all ran on one set of nodes do not, and then a slow node looks like scaling. Each of
the two findings has half of the level, so that at most 5 % of the studies have one whose runs get
their nodes at random and whose nodes are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import comb
from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.tables.group_reductions import NAN, moments
from hpc_train.tables.matched_points import matched
from hpc_train.tables.points import KEY, Grouped, grouped
from hpc_train.tables.probability_distributions import normal_below
from hpc_train.tables.record_arrays import Ints
from hpc_train.tables.run_order import LEVEL, log_rates
from hpc_train.tables.runs import OK
from hpc_train.tables.shared_objects import shared

Nodes = frozenset[str]


class ApartPoints(NamedTuple):
    """A point, and one it is compared with, as rows of points, and the nodes of each."""

    point: int
    other: int
    nodes: tuple[str, ...]
    others: tuple[str, ...]


class SlowNodes(NamedTuple):
    """Nodes, the rate of their runs relative to the other runs of their points, these runs."""

    nodes: tuple[str, ...]
    factor: float
    runs: int


class NodeSets(NamedTuple):
    """What the nodes show: points apart from what they are compared with, and slow nodes."""

    apart: tuple[ApartPoints, ...] = ()
    slow: SlowNodes | None = None


class _PointNodes(NamedTuple):
    """The nodes of a point, and the probability that all its runs got one set by chance.

    The probability is 1 if they are on several sets.
    """

    nodes: Nodes
    chance: float


def node_sets(runs: pd.DataFrame, points: pd.DataFrame) -> NodeSets:
    """Return what the nodes of the ok runs show, from rows of `run_frame` and `speedup_frame`.

    A point counts if the nodes of all its ok runs are known. It is compared with the baseline of
    its series, and with the point of its size in the first series.
    """
    texts = shared(runs["node_list"] if "node_list" in runs else [])
    known = [_nodes(text) for text in texts.objects]
    if not any(known):
        return NodeSets()
    sets = [known[code] for code in texts.codes.tolist()]
    groups = grouped(runs)
    found = _point_nodes(_of_points(groups, sets))
    return NodeSets(tuple(_apart(found, _compared(points))), _slow(groups, sets))


def _nodes(text: object) -> Nodes:
    return frozenset(text.split(",")) if isinstance(text, str) and text else Nodes()


def apart_sides(a: pd.DataFrame, b: pd.DataFrame) -> tuple[ApartPoints, ...]:
    """Return the points of a comparison whose two sides have no common node, as its rows."""
    own: dict[int, list[Nodes]] = {}
    pairs = matched(a, b).points.values()
    for place, pair in enumerate(pairs):
        for side, runs in enumerate(pair):
            ok = runs[runs["state"] == OK]
            if len(ok):
                own[2 * place + side] = [_nodes(text) for text in ok.get("node_list", [""])]
    found = _point_nodes(own)
    apart = _apart(found, [(2 * place, 2 * place + 1) for place in range(len(pairs))])
    return tuple(one._replace(point=one.point // 2, other=one.other // 2) for one in apart)


def _apart(
    found: Mapping[int, _PointNodes], compared: Iterable[tuple[int, int]]
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


def _of_points(groups: Grouped, sets: Sequence[Nodes]) -> dict[int, list[Nodes]]:
    """Return the nodes of the ok runs of each point."""
    own: dict[int, list[Nodes]] = {}
    for run in np.flatnonzero(groups.ok).tolist():
        own.setdefault(int(groups.point[run]), []).append(sets[run])
    return own


def _point_nodes(own: Mapping[int, Sequence[Nodes]]) -> dict[int, _PointNodes]:
    """Return the nodes of each point whose ok runs all have known nodes.

    n runs on k of N nodes are all on one set with probability C(N, k)^-(n-1). N counts the nodes
    that the study used; further nodes make the probability smaller.
    """
    known = {point: of for point, of in own.items() if all(of)}
    most = len(Nodes().union(*chain.from_iterable(known.values())))
    return {
        point: _PointNodes(
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


def _slow(groups: Grouped, sets: Sequence[Nodes]) -> SlowNodes | None:
    """Return the nodes whose runs are the slowest of their points, if chance does not explain it.

    Chance exchanges the nodes of the runs of a point: m of n runs on a node have a sum of
    deviations, in standard deviations of the point, with variance m (1 - m/n). Their sum over the
    points is taken as normal, and Bonferroni's correction counts the nodes.
    """
    logs = np.where([bool(one) for one in sets], log_rates(groups), NAN)
    number, mean, variance = moments(logs, groups.point, groups.size)
    deviation = logs - mean[groups.point]
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = deviation / np.sqrt(variance[groups.point])
    tests: list[tuple[float, SlowNodes]] = []
    for own, nodes in _by_runs(sets, np.flatnonzero(np.isfinite(scaled))).items():
        places = np.array(own)
        each, count = np.unique(groups.point[places], return_counts=True)
        if (spread := float((count * (1 - count / number[each])).sum())) > 0:
            score = float(scaled[places].sum()) / spread**0.5
            factor = float(np.exp(deviation[places].sum() / spread))
            tests.append((score, SlowNodes(tuple(nodes), factor, len(own))))
    score, slowest = min(tests, default=(0.0, None))
    return slowest if normal_below(score) * len(tests) < LEVEL / 2 else None


def _by_runs(sets: Sequence[Nodes], used: Ints) -> dict[tuple[int, ...], list[str]]:
    """Return the nodes by their runs: nodes that were always together cannot be told apart."""
    runs: dict[str, list[int]] = {}
    for run in used.tolist():
        for node in sorted(sets[run]):
            runs.setdefault(node, []).append(run)
    found: dict[tuple[int, ...], list[str]] = {}
    for node, own in sorted(runs.items()):
        found.setdefault(tuple(own), []).append(node)
    return found
