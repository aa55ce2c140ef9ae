"""A page with laws: what the paper cuts, and the size of what a pointer hits."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs, selection
from hpc_train.pipeline.write_report import default_options, render_report
from tests.reports.chromium import Tab

pytestmark = pytest.mark.browser

HEAD = "strategy,nodes,gpus_per_node,samples_per_second,global_batch_size\n"
# Targets of the pointer outside of running text have 24 pixels (WCAG 2.2 AA, 2.5.8).
SMALL = """
[...document.querySelectorAll("a[href], button, input, summary")]
  .filter((e) => e.checkVisibility() && !e.closest("p, li, td"))
  .filter((e) => e.getBoundingClientRect().height < 24).map((e) => e.outerHTML.slice(0, 90))
"""
# Tables that the paper cuts, with what is beyond its edge.
CUT = """
[...document.querySelectorAll("table")].filter((e) => e.checkVisibility())
  .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((e) => e.tHead.textContent)
"""


@pytest.fixture(scope="module")
def laws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of ten series, each with the law of Amdahl."""
    folder = tmp_path_factory.mktemp("page")
    # 1,000 samples/s with a serial share of 1 % to 10 %: Amdahl's law.
    rows = [
        f"strategy-{i},{n},4,{1000 * n / (0.99 - i / 100 + (i + 1) * n / 100):.4f},1024\n"
        for i in range(10)
        for n in (1, 2, 4, 8, 16)
    ]
    source, path = folder / "runs.csv", folder / "r.html"
    source.write_text(HEAD + "".join(rows))
    made = build_report(
        report_inputs((str(source),), selection(folder)), default_options(path, None)
    )
    path.write_text(render_report(made, "html"), encoding="utf-8")
    return path


def test_targets_of_the_pointer_are_large_enough(tab: Tab, laws: Path) -> None:
    tab.open(laws)
    assert tab.value("document.querySelectorAll('.download, th button').length") > 3
    assert tab.value(SMALL) == []


def test_the_paper_cuts_no_table_of_laws(tab: Tab, laws: Path) -> None:
    tab.medium("print")
    tab.open(laws, 688)
    assert "Laws" in tab.value("[...document.querySelectorAll('h2')].map((e) => e.textContent)")
    assert tab.value(CUT) == []
    tab.medium()
