from typing import Any

import pytest

from hpc_train.jobs.study import Gates
from hpc_train.reports.gates import verdicts
from hpc_train.scaling.measurements import LOSS_LOST

SIZES = ("series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus")


def point(nodes: int) -> dict[str, Any]:
    return {
        "series": "all", "nodes": nodes, "gpus_per_node": 4, "tasks_per_node": 4,
        "ranks": 4 * nodes, "gpus": 4 * nodes, "n_ok": 1, "not_ok": "", "note": "",
        "is_baseline": nodes == 1,
        "efficiency": 0.9,
    }  # fmt: skip


def run(nodes: int, accuracy: float | None, loss: float | None = None, **more: Any) -> Any:
    sizes = {name: point(nodes)[name] for name in SIZES}
    return {
        "run_id": f"n{nodes}", "state": "COMPLETED", "problem": "", "flags": [], "loss": loss,
        "accuracy": accuracy, "samples_seen": None, **sizes, **more,
    }  # fmt: skip


def said(*runs: dict[str, Any], gates: Gates | None = None) -> list[tuple[str, str, str]]:
    points = [point(nodes) for nodes in dict.fromkeys(one["nodes"] for one in runs)]
    found = verdicts(gates or Gates(), points, runs)
    always = ("missing", "plausible")
    own: list[tuple[str, str, str]] = [
        (v.gate, v.where, v.outcome) for v in found if v.gate not in always
    ]
    return own if gates else [verdict for verdict in own if verdict[2] != "met"]


def test_a_collapsed_accuracy_of_one_run_is_not_met() -> None:
    assert said(run(1, 0.93), run(2, 0.10)) == [("accuracy", "8 GPUs", "not met")]
    assert said(run(1, 0.93), run(2, 0.90)) == []
    (found,) = (
        v
        for v in verdicts(Gates(), [point(1), point(2)], (run(1, 0.93), run(2, 0.1)))
        if v.gate == "accuracy" and v.outcome != "met"
    )
    assert found.reason == (
        "accuracy 0.1 of n2 (n=1), 83.00 points below 0.93 at the baseline; allowed: 3"
    )


def test_one_collapsed_run_of_several_is_enough() -> None:
    two = [run(2, 0.92), run(2, 0.93), run(2, 0.1)]
    assert said(run(1, 0.93), *two) == [("accuracy", "8 GPUs", "not met")]
    assert said(run(1, 0.93), run(1, 0.1), run(2, 0.93)) == [("accuracy", "4 GPUs", "not met")]


def test_a_limit_that_was_asked_for_holds_and_is_said() -> None:
    gates = Gates(accuracy=0.9)
    assert said(run(1, 0.93), run(2, 0.1), gates=gates) == [
        ("accuracy", "4 GPUs", "met"), ("accuracy", "8 GPUs", "met"),
    ]  # fmt: skip
    assert said(run(1, None), run(2, None), gates=gates) == [("accuracy", "the study", "not met")]


@pytest.mark.parametrize(
    ("base", "own", "outcome"),
    [(2.0, 11.0, "not met"), (2.0, 2.9, None), (0.02, 0.07, None), (-50.0, 3.0, "not met"),
     (0.0, 0.05, None), (0.0, 0.5, "not met")],
)  # fmt: skip
def test_a_loss_that_exploded_is_not_met(base: float, own: float, outcome: str | None) -> None:
    found = said(run(1, None, base), run(2, None, own))
    assert found == ([("loss", "8 GPUs", outcome)] if outcome else [])


def test_a_loss_that_ended_as_nan_is_not_met_at_the_baseline_either() -> None:
    lost: dict[str, Any] = {"flags": [LOSS_LOST]}
    assert said(run(1, None, 2.0, **lost), run(2, None, 2.0)) == [("loss", "4 GPUs", "not met")]
    assert said(run(1, None), run(2, None, **lost)) == [("loss", "8 GPUs", "not met")]


def test_a_loss_after_fewer_samples_is_not_decided() -> None:
    short = run(2, None, 11.0, samples_seen=100.0)
    assert said(run(1, None, 2.0, samples_seen=1000.0), short) == [
        ("loss", "8 GPUs", "not decided")
    ]


def test_each_series_is_compared_with_its_own_baseline() -> None:
    points = [{**point(nodes), "series": name} for name in ("a", "b") for nodes in (1, 2)]
    runs = tuple(
        run(nodes, accuracy, series=name)
        for name, nodes, accuracy in (("a", 1, 0.93), ("a", 2, 0.5), ("b", 1, 0.6), ("b", 2, 0.58))
    )
    found = verdicts(Gates(), points, runs)
    assert [(v.where, v.value) for v in found if v.gate == "accuracy" and v.outcome != "met"] == [
        ("8 GPUs with a", 0.5)
    ]


def test_a_small_limit_allows_only_a_small_rise_of_a_small_loss() -> None:
    gates = Gates(loss=0.01)
    sizes = ("4 GPUs", "8 GPUs")
    for loss, outcome in ((0.0505, "met"), (0.06, "not met")):
        found = said(run(1, None, 0.05), run(2, None, loss), gates=gates)
        assert found == [("loss", sizes[0], "met"), ("loss", sizes[1], outcome)]
