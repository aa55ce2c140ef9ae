"""Points and their baselines -> which of them must not be compared, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from hpc_train.tables.baseline import Baselines
from hpc_train.tables.moments import Floats
from hpc_train.tables.points import Grouped, not_ok
from hpc_train.tables.regime import batches
from hpc_train.tables.runs import OK


def refused(
    groups: Grouped, base: Baselines, usable: Floats, columns: Mapping[str, Any]
) -> Baselines:
    """Take away the baseline where the regime is mixed, or the baseline has no `usable` run."""
    point, notes = base.point.copy(), list(base.note)
    said: dict[int, str] = {}
    for own, series in enumerate(groups.of_point.tolist()):
        mixed = columns["regime"][own] == "mixed"
        if not mixed and (point[own] < 0 or usable[own]):
            continue
        if series not in said:
            said[series] = (
                _mixed(groups, series)
                if mixed
                else _without(groups, point[own], columns["basis"][own])
            )
        point[own], notes[own] = -1, said[series]
    return Baselines(point, notes)


def _mixed(groups: Grouped, series: int) -> str:
    shown = batches(groups.runs[groups.series == series])
    return f"no speedup: batch and size change together (regime mixed): the global batch is {shown}"


def _without(groups: Grouped, point: int, basis: str) -> str:
    own = groups.runs.iloc[np.flatnonzero(groups.point == point)]
    states = Counter(str(state) for state in own["state"] if state != OK)
    why = not_ok(states) or f"none with {basis}"
    return f"no speedup: the baseline has no ok run ({why}: {', '.join(own['run_id'].astype(str))})"
