"""Of many series a table says how each scales, so that the summary stays short."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hpc_train.model.report import Report
from hpc_train.model.study import Gates
from hpc_train.reports.scaling_report import TITLE, scaling_report
from tests.tables.strategies import tables


def law(number: int) -> Callable[[int], float]:
    """Return a throughput that is higher and scales worse with each number."""
    return lambda nodes: 100.0 * (number + 3) * nodes / (1 + 0.06 * number * (nodes - 1))


def report_of(series: int) -> Report:
    found = tables({f"way{i}": law(i) for i in range(series)}, gates=Gates(efficiency=0.9))
    return scaling_report(found.study, found.runs, found.points, found.fastest)


@pytest.fixture(scope="module", name="ten")
def _ten() -> Report:
    return report_of(10)


def test_one_sentence_replaces_those_of_each_series(ten: Report) -> None:
    (said,) = (line for line in ten.summary if "relative to its own smallest size" in line)
    assert said == (
        "Largest speedup of each of 10 series, relative to its own smallest size: 1.67 (way9, "
        "8 GPUs) to 8.00 (way0, 8 GPUs); table Scaling of each series."
    )
    assert not any(line.startswith("Baseline under") for line in ten.summary)
    # Fastest series and point, the sentence, what was measured, and the common baseline.
    assert len(ten.summary) <= 7


def test_the_table_has_baseline_speedup_and_useful_sizes_of_each_series(ten: Report) -> None:
    table = ten.tables[1]
    assert table.title == TITLE
    keys = [column.key for column in table.columns]
    rows = {row[0].text: dict(zip(keys, (c.text for c in row), strict=True)) for row in table.rows}
    assert len(rows) == 10
    assert rows["way0"]["baseline"] == "1 GPU"
    assert rows["way0"]["result"] == "300.0 samples/s"
    assert rows["way0"]["speedup"].startswith("8.00 [")
    assert [rows[f"way{i}"]["efficient"] for i in (0, 1, 9)] == ["8 GPUs", "2 GPUs", "none"]
    assert [rows[f"way{i}"]["doubled"] for i in (0, 9)] == ["8 GPUs", "none"]
    assert "90 %\nup to" in next(c.heading for c in table.columns if c.key == "efficient")


def test_three_series_have_sentences_and_no_table() -> None:
    few = report_of(3)
    assert TITLE not in [table.title for table in few.tables]
    assert sum("relative to its own smallest size" in line for line in few.summary) == 3
