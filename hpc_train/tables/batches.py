"""Run table -> series in which no point holds runs of different global batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hpc_train.model.study import Scaling
from hpc_train.tables.moments import SAME, Bools, Codes, Floats, codes, filled, levels_of, numbers
from hpc_train.tables.points import KEY
from hpc_train.tables.regime import batches
from hpc_train.tables.runs import OK
from hpc_train.tables.series import narrowed


def batch_split(runs: pd.DataFrame, declared: Scaling | None) -> tuple[Any, list[str]]:
    """Return the name of each run's series, split where a point has several batches, and why.

    A series is split by global batch or by batch per rank, whichever leaves fewer parts of one
    size; a declared regime decides. Runs of different batches are never averaged.
    """
    names = runs["series"].to_numpy(dtype=object).copy()
    ok = (runs["state"] == OK).to_numpy(dtype=bool)
    batch = np.where(ok, numbers(runs, "global_batch"), np.nan)
    point = codes([runs[name] for name in KEY])
    notes = []
    for label in dict.fromkeys(names[_several(batch, point)]):
        own = np.flatnonzero(names == label)
        field, values, level = _split(batch[own], numbers(runs, "ranks")[own], point[own], declared)
        level = filled(level, point[own], np.zeros(len(own), dtype=np.int64))
        texts = {number: f"{values[level == number][0]:g}" for number in set(level.tolist())}
        names[own] = [narrowed(str(label), field, texts[number]) for number in level.tolist()]
        notes.append(
            f"runs of one size have different global batches ({batches(runs.iloc[own])}): series "
            f"of their own by {field}, as they are not averaged"
        )
    return names, notes


def _several(batch: Floats, point: Codes) -> Bools:
    """Whether each run is of a point that has several batches."""
    low = pd.Series(batch).groupby(point).transform("min").to_numpy(dtype=np.float64)
    high = pd.Series(batch).groupby(point).transform("max").to_numpy(dtype=np.float64)
    several: Bools = high - low > SAME * high
    return several


def _split(
    batch: Floats, ranks: Floats, point: Codes, declared: Scaling | None
) -> tuple[str, Floats, Codes]:
    share = batch / ranks
    ways = [
        ("global_batch", batch, levels_of(batch, SAME)),
        ("batch_per_rank", share, levels_of(share, SAME)),
    ]
    if np.isnan(share[~np.isnan(batch)]).any():
        return ways[0]
    if declared is not None:
        return ways[declared == "weak"]
    return min(ways, key=lambda way: _alone(way[2], ranks))


def _alone(level: Codes, ranks: Floats) -> int:
    """Return how many levels were measured at one size only."""
    known = level >= 0
    pairs = np.unique(np.stack([level[known], ranks[known].astype(np.int64)]), axis=1)
    return int((np.bincount(pairs[0]) == 1).sum())
