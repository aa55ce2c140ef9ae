"""The first lines of a report say which points share no node, and which runs are slow."""

from __future__ import annotations

import pandas as pd

from hpc_train.model.report import Report
from hpc_train.reports.caveats import with_run_caveats
from hpc_train.tables.caveats import ApartPoints, SlowRun

REPORT = Report(title="s", summary=("2 nodes train 1.9 times as fast as 1 node.",), tables=())
POINTS = pd.DataFrame({
    "series": ["all"] * 2, "nodes": [1, 2], "gpus_per_node": 0, "tasks_per_node": 1,
    "ranks": [1, 2], "gpus": 0,
})  # fmt: skip


def test_points_without_a_common_node_come_first_with_their_nodes() -> None:
    others = tuple(f"n{number:02}" for number in range(10))
    found = (ApartPoints(1, 0, ("a", "b"), others),)
    first, *rest = with_run_caveats(REPORT, found, (), POINTS).summary
    assert first.startswith("Caveats: points that are compared share no node, and their repet")
    assert first.endswith(": 2 ranks on a, b, 1 rank on " + ", ".join(others[:8]) + " and 2 more.")
    assert tuple(rest) == REPORT.summary
    many = with_run_caveats(REPORT, found * 10, (), POINTS)
    assert many.summary[0].endswith(" and 2 more; and 2 more.")


def test_a_slow_run_is_named_with_its_point() -> None:
    (first, *_) = with_run_caveats(REPORT, (), (SlowRun("r7", 1, 12, 1.2214),), POINTS).summary
    assert first == (
        "Caveats: a run is far slower than the others: r7 took 1.22 times as long as the median of "
        "the 12 runs at 2 ranks. Find the cause, or exclude it: --exclude RUN=REASON."
    )
    assert with_run_caveats(REPORT, (), (), POINTS) == REPORT
