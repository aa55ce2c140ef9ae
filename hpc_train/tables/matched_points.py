"""Two run tables -> the runs of each point on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

Key = tuple[Any, ...]
SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "ranks")


class MatchedPoints(NamedTuple):
    """Both tables with a column `key`, and by key the runs of each point in both, in order.

    A key is the name of the series, empty if only sizes are compared, and the values of SIZES.
    """

    sides: list[pd.DataFrame]
    points: dict[Key, list[pd.DataFrame]]


def matched(a: pd.DataFrame, b: pd.DataFrame) -> MatchedPoints:
    """Match the points of two tables of `run_frame`.

    By nodes, GPUs and tasks per node (by ranks where those are unknown), and by the name of their
    series; where each side has one series only, by size alone.
    """
    alone = all(side["series"].nunique() <= 1 for side in (a, b))
    same = set(a["series"]) == set(b["series"])
    both = [_keyed(side, by_series=same or not alone) for side in (a, b)]
    groups = [_points(side) for side in both]
    keys = _ordered(list(dict.fromkeys(chain(*groups))))
    pairs = {
        key: [group.get(key, side.iloc[:0]) for group, side in zip(groups, both, strict=True)]
        for key in keys
    }
    return MatchedPoints(both, pairs)


def _points(runs: pd.DataFrame) -> dict[Key, pd.DataFrame]:
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(runs["key"]):
        places.setdefault(key, []).append(place)
    return {key: runs.iloc[own] for key, own in places.items()}


def _keyed(runs: pd.DataFrame, *, by_series: bool) -> pd.DataFrame:
    """Add the key of each run's point: its series, and its sizes, -1 if unknown."""
    sizes = runs[list(SIZES)].astype("Int64").fillna(-1).astype("int64")
    known = (sizes["nodes"] > 0) & (sizes["tasks_per_node"] > 0)
    # With nodes and tasks the number of ranks is redundant; a log may not name all ranks.
    sizes["ranks"] = sizes["ranks"].where(~known, sizes["nodes"] * sizes["tasks_per_node"])
    series = runs["series"].astype(str) if by_series else [""] * len(runs)
    keyed: pd.DataFrame = runs.assign(
        key=pd.Series(list(zip(series, *(sizes[name] for name in SIZES), strict=True)),
                      index=runs.index, dtype=object)
    )  # fmt: skip
    return keyed


def _ordered(keys: Sequence[Key]) -> list[Key]:
    """Sort points by size within their series; keep the order of the series."""
    order = {name: i for i, name in enumerate(dict.fromkeys(key[0] for key in keys))}

    def place(key: Key) -> tuple[int, ...]:
        series, nodes, gpus, tasks, ranks = key
        return order[series], max(nodes, 0) * max(gpus, 0), ranks, nodes, gpus, tasks

    return sorted(keys, key=place)
