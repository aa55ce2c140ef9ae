"""The figure of throughput against memory."""

from __future__ import annotations

from hpc_train.reports.figures import figures
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
