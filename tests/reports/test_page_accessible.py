"""What a checker of accessibility computes from a page: names, labels, contrast; the fold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import default_options, render_report
from tests.reports.chromium import Tab

pytestmark = pytest.mark.browser

STRATEGIES = ("ddp", "ddp+bucket", "fsdp-full", "fsdp-grad", "fsdp-hybrid", "zero-1", "zero-2",
              "zero-3", "megatron-tp2", "pipeline-4")  # fmt: skip
HEAD = "strategy,nodes,gpus_per_node,samples_per_second,global_batch_size\n"
UNLINKED = """
[...document.querySelectorAll("main section[id]")].map((e) => e.id)
  .filter((id) => !document.querySelector(`nav a[href="#${id}"]`))
"""


def table(series: int, repetitions: int) -> str:
    rows = [HEAD]
    for i, name in enumerate(STRATEGIES[:series]):
        for n in (1, 2, 4, 8, 16):
            for r in range(repetitions):
                rate = n * 3000 * (1 - 0.01 * i + 0.0004 * r) / (1 + (0.004 + 0.006 * i) * n)
                rows.append(f"{name},{n},8,{rate:.3f},2048\n")
    return "".join(rows)


def page(folder: Path, series: int, repetitions: int) -> Path:
    source = folder / "runs.csv"
    source.write_text(table(series, repetitions))
    path = folder / f"{series}.html"
    inputs = report_inputs((str(source),), Search(root=folder))
    made = build_report(inputs, default_options(path, None))
    path.write_text(render_report(made, "html"), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=[(1, 3), (10, 20)], ids=str)
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("page"), *request.param)


def test_every_section_has_a_link(tab: Tab, shown: Path) -> None:
    tab.open(shown)
    assert tab.value(UNLINKED) == []


def test_paper_shows_what_is_closed_on_the_screen(tab: Tab, shown: Path) -> None:
    tab.medium("print", scheme="dark")
    tab.open(shown, 688)
    closed = "[...document.querySelectorAll('details:not(.unprinted, .unprinted *) > :last-child')]"
    assert tab.value(f"{closed}.filter((e) => !e.checkVisibility()).length") == 0
    white = "getComputedStyle(document.body).backgroundColor"
    assert tab.value(white) in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    runs = tab.value("document.querySelectorAll('.all tbody tr').length")
    assert tab.value("document.getElementById('runs').checkVisibility()") is (runs <= 300)
    tab.medium()
