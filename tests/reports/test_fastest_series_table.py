"""A report of several strategies: the headline names the fastest, not the one that scales best."""

from __future__ import annotations

import json

import pytest

from hpc_train.model.report import Report
from hpc_train.model.study import Gates
from hpc_train.reports.formats import json_report, latex, markdown, text
from hpc_train.reports.formats.page.render import render as page
from hpc_train.reports.scaling_report import scaling_report
from tests.tables.strategies import SLOW_AND_FAST, Tables, tables


def made(found: Tables) -> Report:
    return scaling_report(found.study, found.runs, found.points, found.fastest)


@pytest.fixture(scope="module", name="report")
def _report() -> Report:
    return made(tables(SLOW_AND_FAST, gates=Gates(efficiency=0.75)))


def test_the_headline_names_the_fast_series_at_each_size(report: Report) -> None:
    assert report.summary[0].startswith("Fastest at 1, 2, 4 and 8 GPUs: B, 2.10 [2.0")
    assert report.summary[0].endswith("] times as fast as A at 8 GPUs.")


def test_the_scaling_of_a_series_is_called_its_own(report: Report) -> None:
    slow, fast = report.summary[1:3]
    assert slow.startswith("Under A, relative to its own smallest size: 8 GPUs train 8.00 [")
    assert "efficiency is at least 75 % up to 8 GPUs, the largest size" in slow
    assert fast.startswith("Under B, relative to its own smallest size: 8 GPUs train 5.60 [")
    assert "efficiency is at least 75 % up to 4 GPUs; each doubling up to 8 GPUs" in fast
    heads = {column.key: column.heading for column in report.tables[0].columns}
    assert heads["speedup"].startswith("own-series\n")
    assert heads["efficiency"].startswith("own-series\n")
    assert heads["common_speedup"] == "speedup to common\nbaseline [95 %]"


def test_the_fastest_point_and_its_cost_are_named() -> None:
    line = next(x for x in made(tables(SLOW_AND_FAST)).summary if x.startswith("Fastest point"))
    assert line == (
        "Fastest point: 8 GPUs under B, 1680 samples/s; a million samples take 1.32 GPU-hours, "
        "1.43 times as many as at 1 GPU under B."
    )
    priced = tables(SLOW_AND_FAST, price_per_gpu_hour=2.0, currency="EUR")
    assert any("1.32 GPU-hours (2.65 EUR), 1.43 times" in line for line in made(priced).summary)


def test_each_size_has_its_own_fastest_and_failures_are_told() -> None:
    crossing = {"A": lambda n: 100.0 * n, "B": lambda n: 150.0 * n**0.5}
    lines = made(tables(crossing, failed=[("B", 8)])).summary
    assert lines[0].startswith("Fastest at 1 and 2 GPUs: B, 1.06 [1.0")
    assert lines[1].startswith("Fastest at 4 and 8 GPUs: A, 1.33 [1.3")
    assert lines[1].endswith("] times as fast as B at 4 GPUs.")
    rows = made(tables(crossing, failed=[("B", 8)])).tables[1].rows
    assert [row[-1].text for row in rows] == ["yes", "yes", "yes", "no result (3 FAILED)"]


def test_a_difference_that_is_noise_is_not_called_one() -> None:
    close = {"A": lambda n: 100.0 * n, "B": lambda n: 100.5 * n}
    found = made(tables(close))
    assert found.summary[0].endswith("; the difference is not significant.")
    assert {row[-1].text for row in found.tables[1].rows} == {"no"}
    assert any("Bonferroni: 4 pairs" in note for note in found.notes)


def test_one_run_each_is_no_test_of_a_difference() -> None:
    found = made(tables(SLOW_AND_FAST, noise=(1.0,)))
    assert found.summary[0].endswith("; one run each: no test of the difference.")
    assert "significant" not in " ".join(found.summary)
    assert {row[-1].text for row in found.tables[1].rows} == {"n=1"}


def test_every_format_has_the_comparison(report: Report) -> None:
    for render in (text.render, markdown.render, latex.render, page):
        shown = render(report)
        assert "Comparison at each size" in shown
        assert "compared" in shown
    rows = json.loads(json_report.render(report))["comparison"]
    assert [row["nodes"] for row in rows] == [1, 2, 4, 8]
    assert rows[-1]["fastest"] == "launcher=B"
    assert rows[-1]["ratio"]["low"] < 2.1 < rows[-1]["ratio"]["high"]
    assert rows[-1]["corrected"]["low"] > 2
    assert max(map(len, text.render(report).splitlines())) <= 100
