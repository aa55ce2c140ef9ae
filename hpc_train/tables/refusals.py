"""Points and their baselines -> which of them must not be compared, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.tables.baseline import Baselines
from hpc_train.tables.moments import Codes, Floats
from hpc_train.tables.points import Grouped, not_ok
from hpc_train.tables.regime import batches
from hpc_train.tables.runs import OK


def refused(
    groups: Grouped, base: Baselines, usable: Floats, columns: Mapping[str, Any]
) -> Baselines:
    """Take away the baseline where the regime is mixed, or the baseline has no `usable` run."""
    point, notes = base.point.copy(), list(base.note)
    said: dict[int, str] = {}
    runs = _Runs(groups)
    for own, series in enumerate(groups.of_point.tolist()):
        mixed = columns["regime"][own] == "mixed"
        if not mixed and (point[own] < 0 or usable[own]):
            continue
        if series not in said:
            said[series] = (
                _mixed(groups.runs.iloc[runs.of_series(series)])
                if mixed
                else _without(groups.runs, runs.of_point(point[own]), columns["basis"][own])
            )
        point[own], notes[own] = -1, said[series]
    return Baselines(point, notes)


class _Runs:
    """Which runs belong to a point or a series: sorted once, as there may be one for each log."""

    def __init__(self, groups: Grouped) -> None:
        self._points, self._series = groups.point, groups.series
        self._by_point = np.argsort(self._points, kind="stable")
        self._by_series = np.argsort(self._series, kind="stable")

    def of_point(self, point: int) -> Codes:
        return _own(self._points, self._by_point, point)

    def of_series(self, series: int) -> Codes:
        return _own(self._series, self._by_series, series)


def _own(codes: Codes, order: Codes, code: int) -> Codes:
    first, last = (np.searchsorted(codes, code, side, sorter=order) for side in ("left", "right"))
    return order[first:last]


def _mixed(own: pd.DataFrame) -> str:
    shown = batches(own)
    return f"no speedup: batch and size change together (regime mixed): the global batch is {shown}"


def _without(runs: pd.DataFrame, own: Codes, basis: str) -> str:
    states = Counter(str(state) for state in runs["state"].iloc[own] if state != OK)
    why = not_ok(states) or f"none with {basis}"
    names = ", ".join(map(str, runs["run_id"].iloc[own]))
    return f"no speedup: the baseline has no ok run ({why}: {names})"
