"""The first lines of a report say which points share no node, and which nodes are slow."""

from __future__ import annotations

import pandas as pd

from hpc_train.model.report import Report
from hpc_train.reports.node_set_caveats import with_node_caveats
from hpc_train.tables.node_sets import ApartPoints, NodeSets, SlowNodes

REPORT = Report(title="s", summary=("2 nodes train 1.9 times as fast as 1 node.",), tables=())
POINTS = pd.DataFrame({
    "series": ["all"] * 2, "nodes": [1, 2], "gpus_per_node": 0, "tasks_per_node": 1,
    "ranks": [1, 2], "gpus": 0,
})  # fmt: skip


def test_points_without_a_common_node_come_first_with_their_nodes() -> None:
    others = tuple(f"n{number:02}" for number in range(10))
    found = NodeSets((ApartPoints(1, 0, ("a", "b"), others),))
    first, *rest = with_node_caveats(REPORT, found, POINTS).summary
    assert first.startswith("Caveats: points that are compared share no node, and their repet")
    assert first.endswith(": 2 ranks on a, b, 1 rank on " + ", ".join(others[:8]) + " and 2 more.")
    assert tuple(rest) == REPORT.summary


def test_a_long_list_of_points_is_cut_with_the_number_of_the_others() -> None:
    found = NodeSets((ApartPoints(1, 0, ("a",), ("b",)),) * 10)
    assert with_node_caveats(REPORT, found, POINTS).summary[0].endswith("1 rank on b; and 2 more.")


def test_slow_nodes_are_named_with_their_loss() -> None:
    found = NodeSets(slow=SlowNodes(("a",), 0.9, 12))
    said = with_node_caveats(REPORT, found, POINTS).summary[0]
    assert said.startswith("Caveats: runs on a are 10 % slower than the other runs of their points")
    assert "(12 runs, p < 0.025 over all nodes)" in said


def test_nothing_is_said_where_nothing_was_found() -> None:
    assert with_node_caveats(REPORT, NodeSets(), POINTS) == REPORT
