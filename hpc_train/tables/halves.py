"""Points -> for each the point of its series that has half its size."""

from __future__ import annotations

from operator import ne

import numpy as np

from hpc_train.tables.moments import Codes, numbers
from hpc_train.tables.points import Grouped, sizes_of


def halves(groups: Grouped) -> Codes:
    """Return the point with half the GPUs (ranks where there are no GPUs), -1 without.

    Of several, the one with as many GPUs on each node, and of those with as many tasks; else the
    one on as many nodes, else the first.
    """
    gpus, ranks, nodes = (column[groups.first] for column in sizes_of(groups.runs))
    size = np.where(gpus > 0, gpus, ranks)
    each = (
        numbers(groups.runs, name)[groups.first] for name in ("gpus_per_node", "tasks_per_node")
    )
    alike = list(zip(*(column.tolist() for column in (*each, nodes)), strict=True))
    series, kind = groups.of_point.tolist(), (gpus > 0).tolist()
    at: dict[tuple[int, bool, float], list[int]] = {}
    keys = list(zip(series, kind, size.tolist(), strict=True))
    for point, key in enumerate(keys):
        at.setdefault(key, []).append(point)
    half = np.full(groups.size, -1, dtype=np.int64)
    for point, (own, counted, number) in enumerate(keys):
        found = at.get((own, counted, number / 2), ())
        if found:
            half[point] = min(found, key=lambda other: [*map(ne, alike[other], alike[point])])
    return half
