"""Nodes of the runs: points without a common node, slow nodes, and how often these are chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from hpc_train.model.record import Record
from hpc_train.tables.node_sets import NodeSets, node_sets
from hpc_train.tables.run_order import LEVEL
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.tables.studies import expected, rate, study

NOISE = (0.01, -0.02, 0.03, -0.01, 0.02, -0.03, 0.015, -0.01, 0.005)


def tables(
    nodes: Sequence[str], series: Sequence[str] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return runs on these nodes, of equal rates per node, and their points."""
    runs, records = [], list[Record]()
    for place, text in enumerate(nodes):
        count = len(text.split(","))
        axes = {"nodes": count} | ({"launcher": series[place]} if series else {})
        runs.append(expected(f"r{place}", nodes=count, axes=axes))
        records += rate(runs[-1].run_id, 100.0 * count)
    table = run_frame(study(runs), records)
    return table, speedup_frame(table, study([]))


def of(
    made: tuple[pd.DataFrame, pd.DataFrame], nodes: Sequence[str], logs: Sequence[float]
) -> NodeSets:
    """Return what the runs show on these nodes, with these deviations of their rates."""
    runs, points = made
    rates = runs["samples_per_second"] * np.exp(logs)
    return node_sets(runs.assign(node_list=list(nodes), samples_per_second=rates), points)


def found(
    nodes: Sequence[str], logs: Sequence[float] = NOISE, series: Sequence[str] | None = None
) -> NodeSets:
    return of(tables(nodes, series), nodes, logs[: len(nodes)])


def test_a_point_on_other_nodes_than_its_baseline_is_named() -> None:
    (one,) = found(["a"] * 4 + ["b,c"] * 4).apart
    assert (one.point, one.other, one.nodes, one.others) == (1, 0, ("b", "c"), ("a",))


def test_series_on_other_nodes_are_named_at_each_size() -> None:
    nodes = ["a"] * 4 + ["a,b"] * 4 + ["c"] * 4 + ["c,d"] * 4
    shown = found(nodes, NOISE[:4] * 4, ["srun"] * 8 + ["torchrun"] * 8).apart
    assert [(one.point, one.other) for one in shown] == [(2, 0), (3, 1)]
    assert shown[1].nodes == ("c", "d")


@pytest.mark.parametrize(
    "nodes",
    [
        # A common node, other nodes for each repetition, and too few runs to exclude chance.
        ["a"] * 4 + ["a,b"] * 4,
        ["a", "b", "c", "d", "e,f", "g,h", "e,h", "f,g"],
        ["a"] * 2 + ["b,c"] * 2,
        ["a", "b,c"],
        ["a"] * 4,
        ["a", "a", "a", ""] + ["b,c"] * 4,
        [""] * 8,
    ],
    ids=["common", "several", "two runs", "one run", "one point", "one unknown", "unknown"],
)
def test_other_points_are_not_named(nodes: list[str]) -> None:
    assert found(nodes, (NOISE * 2)[: len(nodes)]).apart == ()


def test_a_slow_node_is_named_with_its_loss() -> None:
    nodes = ["a", "b", "c", "a", "d", "b", "a,b", "c,d", "b,c", "a,d", "c,b", "d,a"] * 2
    logs = [-0.1 * ("a" in text) + NOISE[i % 9] / 10 for i, text in enumerate(nodes)]
    shown = found(nodes, logs).slow
    assert shown is not None
    assert (shown.nodes, shown.runs) == (("a",), 10)
    assert shown.factor == pytest.approx(np.exp(-0.1), rel=0.01)
    # The fast nodes of a study are no caveat, nor nodes without which nothing ran.
    faster = found(["a", "b", "c"] * 6, [0.1 * (i % 3 == 0) for i in range(18)]).slow
    assert faster is None or faster.factor < 1
    assert found(["a"] * 9 + ["a,b"] * 9, NOISE * 2).slow is None


def test_nodes_that_were_always_together_are_named_together() -> None:
    nodes = ["a,b", "c,d"] * 6
    shown = found(nodes, [-0.1 * (i % 2 == 0) + NOISE[i % 9] / 10 for i in range(12)]).slow
    assert shown is not None
    assert shown.nodes == ("a", "b")


def test_runs_without_a_rate_or_a_spread_leave_nothing_to_say() -> None:
    assert found(["a", "b"] * 4, [0.0] * 8) == NodeSets()
    assert node_sets(pd.DataFrame({"state": []}), pd.DataFrame()) == NodeSets()


def at_random(chance: np.random.Generator, pool: int, points: int, repetitions: int) -> list[str]:
    """Return the nodes of runs on 1, 2, 4 ... nodes, each on nodes drawn from a pool."""
    return [
        ",".join(f"n{node:02}" for node in sorted(chance.choice(pool, 2**point, replace=False)))
        for point in range(points)
        for _ in range(repetitions)
    ]


SIZES = ((4, 2, 3), (4, 3, 2), (8, 3, 5), (64, 3, 3))
SPREADS = ("equal", "unequal", "outliers")


def test_at_most_one_study_in_twenty_on_equal_nodes_has_a_finding() -> None:
    chance = np.random.default_rng(17)
    found = [
        has_finding(chance, size, made, spread)
        for size in SIZES
        for made in [tables(at_random(chance, *size))]
        for spread in SPREADS * 12
    ]
    # Three standard errors of the studies above the level.
    limit = LEVEL + 3 * (LEVEL * (1 - LEVEL) / len(found)) ** 0.5
    assert sum(found) / len(found) <= limit


def has_finding(
    chance: np.random.Generator,
    size: tuple[int, int, int],
    made: tuple[pd.DataFrame, pd.DataFrame],
    spread: str,
) -> bool:
    """Return whether a study on equal nodes, drawn at random, has a finding."""
    nodes = at_random(chance, *size)
    noise = 0.02 * chance.standard_normal(len(nodes))
    many = np.array([text.count(",") for text in nodes])
    noise *= np.where(many == 1, 3, 1) if spread == "unequal" else 1
    noise += 0.2 * (chance.random(len(nodes)) < 0.1) if spread == "outliers" else 0
    shown = of(made, nodes, noise.tolist())
    return bool(shown.apart) or shown.slow is not None
