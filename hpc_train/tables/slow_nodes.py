"""Step times of nodes -> the nodes that took much longer than the others of their runs."""

from __future__ import annotations

import pandas as pd

from hpc_train.model.value import Value

# Ratio to the median of the other nodes: less is left to the figure `nodes`.
SLOW = 1.5


class SlowNode(Value, frozen=True, kw_only=True):
    """A node that was `times` as slow as the others, in the median of its `runs`."""

    node: str
    times: float
    runs: int


def slow_nodes(frame: pd.DataFrame) -> tuple[SlowNode, ...]:
    """Return the slow nodes of `node_frame`, the slowest first; runs on one node tell nothing."""
    ratios: dict[str, list[float]] = {}
    for _, run in frame[frame["step_time_s"] > 0].groupby("run_id"):
        times = dict(zip(run["node"], run["step_time_s"], strict=True))
        for node, seconds in times.items():
            others = [other for name, other in times.items() if name != node]
            if others:
                ratios.setdefault(str(node), []).append(seconds / float(pd.Series(others).median()))
    found = [
        SlowNode(node=node, times=float(pd.Series(several).median()), runs=len(several))
        for node, several in ratios.items()
    ]
    return tuple(sorted((n for n in found if n.times >= SLOW), key=lambda n: -n.times))
