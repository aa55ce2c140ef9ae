from typing import Any

import pytest

from hpc_train.jobs.study import Gates, Regression
from hpc_train.reports import json_report, text
from hpc_train.reports.gates import (
    against_reference,
    open_checks,
    scripts_there,
    sentence,
    verdicts,
    verdicts_of,
)
from hpc_train.reports.report import GateResult
from tests.reports.finished import report

BUSBW = {"n1": 190.0, "n2": 150.0}


ALWAYS = ("missing", "plausible")


def point(nodes: int, **values: Any) -> dict[str, Any]:
    return {
        "series": "all", "nodes": nodes, "gpus": 4 * nodes, "ranks": 4 * nodes, "n_ok": 3,
        "not_ok": "", "note": "", "is_baseline": nodes == 1, "efficiency": None, **values,
    }  # fmt: skip


def change(nodes: int, value: float | None, low: float | None, high: float | None) -> Any:
    limits = {"ratio": value, "ratio_low": low, "ratio_high": high, "n_a": 1, "n_b": 3}
    quality = dict.fromkeys(("accuracy_change_pp", "accuracy_limit_pp", "loss_a", "loss_b"))
    return point(nodes, why="not in B", **limits, **quality)


def outcomes(gates: Gates, *points: dict[str, Any], **known: Any) -> list[tuple[str, str]]:
    found = verdicts(gates, points, **known)
    return [(v.where, v.outcome) for v in found if v.gate not in ALWAYS]


def only(gates: Gates, *points: dict[str, Any], **known: Any) -> GateResult:
    (found,) = (v for v in verdicts(gates, points, **known) if v.gate not in ALWAYS)
    return found


def test_efficiency_is_decided_at_each_point_but_the_baseline() -> None:
    points = [
        point(1, efficiency=1.0),
        point(2, efficiency=0.75 - 1e-12),
        point(4, efficiency=0.6, efficiency_low=0.5, efficiency_high=0.8),
        point(8, n_ok=0, not_ok="3 FAILED"),
    ]
    assert outcomes(Gates(efficiency=0.75), *points) == [
        ("8 GPUs", "met"), ("16 GPUs", "not met"), ("32 GPUs", "not decided"),
    ]  # fmt: skip
    found = verdicts(Gates(efficiency=0.75), points)
    said = [sentence(v) for v in found if v.outcome != "met"]
    assert "missing point: 32 GPUs: 3 FAILED" in said
    assert "gate not met: 16 GPUs: efficiency 0.600 [0.500, 0.800] < 0.75" in said
    assert "gate not decided: 32 GPUs: no efficiency: 3 FAILED" in said


def test_a_gate_that_is_decided_at_no_point_is_not_met() -> None:
    points = [point(1, efficiency=1.0), point(2), point(4)]
    assert outcomes(Gates(efficiency=0.75), *points) == [
        ("8 GPUs", "not decided"), ("16 GPUs", "not decided"), ("the study", "not met"),
    ]  # fmt: skip
    last = verdicts(Gates(efficiency=0.75), points)[-1]
    assert last.reason == "efficiency is not decided at any point"


def test_doubling_is_a_speedup_and_needs_half_the_size() -> None:
    points = [point(1), point(2, doubling=0.75), point(3, doubling=None), point(4, doubling=0.7)]
    assert outcomes(Gates(doubling=1.5), *points) == [("8 GPUs", "met"), ("16 GPUs", "not met")]


def test_what_nothing_decides_is_not_met() -> None:
    found = only(Gates(efficiency=0.5), point(1, efficiency=1.0))
    assert (found.where, found.outcome) == ("the study", "not met")
    assert only(Gates(busbw=100)).reason == "busbw is not decided at any point"
    # A limit of 0 is a limit.
    assert only(Gates(accuracy=0.0)).reason == "accuracy is not decided at any point"
    assert only(Gates(loss=0.0)).reason == "loss is not decided at any point"
    assert outcomes(Gates(regression=Regression(against="old"))) == [("the study", "not met")]


def test_a_missing_point_can_be_allowed() -> None:
    lost = point(2, n_ok=0, not_ok="1 MISSING")
    assert [v.outcome for v in verdicts(Gates(), [lost])] == ["not met"]
    assert verdicts(Gates(missing=False), [lost]) == ()


def test_node_counts_are_those_with_a_result() -> None:
    points = [point(1), point(2), point(4, n_ok=0, not_ok="1 FAILED")]
    found = only(Gates(node_counts=3), *points)
    assert (found.outcome, found.reason) == ("not met", "2 node counts (1, 2) < 3")
    assert only(Gates(node_counts=2), *points).outcome == "met"
    assert only(Gates(node_counts=3), point(1)).reason == "1 node count (1) < 3"
    series = [point(nodes, series=name) for name, nodes in (("a", 1), ("a", 2), ("b", 4))]
    assert outcomes(Gates(node_counts=2), *series) == [("a", "met"), ("b", "not met")]


@pytest.mark.parametrize(("scripts", "outcome"), [((3, 3), "met"), ((3, 2), "not met"),
                                                  ((0, 0), "not met")])  # fmt: skip
def test_scripts_of_all_runs_must_be_there(scripts: tuple[int, int], outcome: str) -> None:
    assert only(Gates(script=True), others=[scripts_there(*scripts)]).outcome == outcome


def test_busbw_is_decided_run_by_run() -> None:
    assert outcomes(Gates(busbw=185), busbw=BUSBW) == [("n1", "met"), ("n2", "not met")]


def test_a_regression_is_an_interval_below_the_tolerance() -> None:
    changes = (
        change(1, 0.90, 0.80, 0.96), change(2, 0.90, 0.88, 0.94), change(4, 0.94, None, None),
        change(8, 0.96, None, None), change(16, None, None, None),
    )  # fmt: skip
    gate = Regression(against="old")
    found = [*against_reference(gate, changes)]
    assert [v.outcome for v in found] == ["met", "not met", "not met", "met", "not decided"]
    assert found[1].reason == "0.900 [0.880, 0.940] times the speed of old; below 0.95"
    assert "n=1" in found[2].reason
    assert found[4].reason == "no ratio to old: only in old"
    worse = {**changes[0], "loss_a": 2.3, "loss_b": 4.5}
    (lost, *_) = against_reference(gate, [worse])
    assert (lost.outcome, lost.reason) == (
        "not met", "the loss is 4.5 instead of 2.3, compared with old",
    )  # fmt: skip


def test_the_report_has_all_verdicts_and_shows_one_row_a_gate() -> None:
    made = report()
    gates = made.tables[-1]
    assert [[cell for cell in row] for row in gates.rows] == [
        ["efficiency", "0.75", "2 of 4", "16 GPUs under srun", "16 GPUs under torchrun"],
        ["plausible", "--", "5 of 5", "--", "--"],
        ["missing", "--", "5 of 6", "16 GPUs under torchrun", "--"],
    ]
    assert len(verdicts_of(made)) == 15
    assert len(made.checks) == 2
    assert [line.partition(":")[0] for line in open_checks(made)] == ["gate not decided"]
    assert '"gates": [' in json_report.render(made)
    assert "\nGates\n" in text.render(made)
