"""The figure of throughput against memory."""

from __future__ import annotations

from hpc_train.reports.figures import figures
from hpc_train.reports.figures.throughput_memory import _fronts
from tests.reports.measured import measured


def test_throughput_and_memory_of_each_strategy_and_size() -> None:
    study, tables = measured((1, 2, 4, 8), ("ddp", "fsdp"), 1, ())
    (figure,) = figures(study, tables, (), ["throughput-memory"])
    assert figure.data is not None
    drawn = {(row["series"], row["ranks"]): row["memory_gib"] for row in figure.data.records}
    rows = tables.strategies
    assert drawn == {(row["series"], row["ranks"]): row["memory_gib"] for row in rows}
    one = [row for row in rows if row["strategy"] == rows[0]["strategy"]]
    assert figures(study, tables._replace(strategies=one), (), ["throughput-memory"]) == ()


def test_points_are_pareto_optimal_among_those_of_their_size() -> None:
    places = {("ddp", 1): (2.0, 10.0), ("fsdp", 1): (1.0, 9.0), ("ddp", 2): (3.0, 20.0),
              ("fsdp", 2): (3.5, 18.0), ("tensor", 4): (0.5, 50.0)}  # fmt: skip
    rows = [
        {"strategy": name, "ranks": ranks, "memory_gib": memory, "samples_per_second": rate}
        for (name, ranks), (memory, rate) in places.items()
    ]
    # Of the size with one strategy, none was chosen.
    assert _fronts(rows) == [[(1.0, -9.0), (2.0, -10.0)], [(3.0, -20.0)]]
