"""The page in a reader's words: order, names of points, what brackets and hollow marks mean."""

from __future__ import annotations

import re

import msgspec
import pytest

from hpc_train.model.report import Fact
from hpc_train.model.study import Gates
from hpc_train.reports.figures import figures
from hpc_train.reports.formats.page.render import MOST_VALUES, render
from hpc_train.reports.plain_rows import plain_rows
from hpc_train.reports.scaling_report import MOST_LINES, MOST_ROWS, summary_lines
from hpc_train.tables.speedup import speedup_frame
from tests.reports.measured import measured
from tests.reports.test_figures import inline, simple
from tests.reports.whole import whole


def test_checks_come_before_the_figures_and_ends_are_said_once() -> None:
    page = render(whole())
    order = re.findall(r'<section id="(\w+)"', page)
    assert order.index("points") < order.index("checks") < order.index("figures")
    failed = page.partition('<section id="failed"')[2].partition("</section>")[0]
    assert failed.count('<details class="end">') == 2
    assert "<table" not in failed


def test_runs_that_a_point_lacks_are_small_and_hollow() -> None:
    study, tables = simple()
    runs = tables.runs.copy()
    lost = runs.index[(runs["nodes"] == 2) & (runs["repetition"] == 1)]
    runs.loc[lost, "state"] = "FAILED"
    fewer = tables._replace(runs=runs, points=speedup_frame(runs, study))
    text = inline(study, fewer, "scaling")
    assert "<title>srun-2-1: FAILED</title>" in text
    assert "small, hollow: some runs without" in text
    assert "small, hollow" not in inline(study, tables, "scaling")


def test_a_gate_on_the_speedup_from_half_the_size_has_a_panel() -> None:
    study, tables = measured((1, 2, 4, 8), ("srun", "torchrun"), 3, (("torchrun", 4),))
    gated = msgspec.structs.replace(study, gates=Gates(doubling=1.5))
    (figure,) = figures(gated, tables, ("inline",), ["efficiency"])
    assert figure.data is not None
    panel = [r for r in figure.data.records if r["quantity"] == "speedup from half the size"]
    own = [row["value"] for row in panel if row["drawn"] == "mean"]
    known = tables.points["doubling"].dropna()
    assert own == pytest.approx([2 * value for value in known], rel=1e-8)
    assert 1.5 < min(own) <= max(own) < 2.1
    assert [row["value"] for row in panel if row["drawn"] == "gate"] == [1.5]
    assert "from half" not in inline(study, tables, "efficiency")


def test_of_many_series_the_summary_says_the_first() -> None:
    names = tuple(f"way{i:03d}" for i in range(MOST_ROWS + 4))
    study, tables = measured((1, 2), names, 1, ())
    lines = summary_lines(study, tables.runs[:0], plain_rows(tables.points))
    assert sum("times as fast" in line for line in lines) == MOST_LINES
    assert f"{MOST_ROWS + 4 - MOST_LINES} more series are in the table of points." in lines


@pytest.mark.parametrize("logs", [MOST_VALUES, MOST_VALUES + 1])
def test_a_log_of_each_of_many_runs_does_not_fill_the_page(logs: int) -> None:
    lines = tuple((f"run-{run}: 1 file, 7 B, sha256 {run:064x}", 1) for run in range(logs))
    facts = (Fact(name="site", values=(("juwels", logs),)), Fact(name="logs", values=lines))
    page = render(msgspec.structs.replace(whole(), provenance=facts))
    folded = f"logs: {logs} values of the provenance"
    assert all(page.count(line) == 1 for line, _ in lines)
    assert ("21, listed below" in page, folded in page) == (logs > MOST_VALUES,) * 2
    assert page.count('<ul class="values">') == (logs > MOST_VALUES)
