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
UNNAMED = """
(() => {
  const name = (e) => e.getAttribute("aria-label") || (e.labels && e.labels.length)
    || (e.getAttribute("aria-labelledby") || "").split(" ").map((id) => document.getElementById(id))
      .filter(Boolean).map((one) => one.textContent).join("") || e.textContent.trim() || e.alt;
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const levels = [...document.querySelectorAll("h1,h2,h3,h4")].map((e) => Number(e.tagName[1]));
  return {
    unnamed: [...document.querySelectorAll(
      "a[href],button,input,summary,img,svg,[role=region],nav,section")]
      .filter((e) => !name(e)).map((e) => e.outerHTML.slice(0, 90)),
    twice: ids.filter((id, i) => ids.indexOf(id) !== i),
    broken: [...document.querySelectorAll("[aria-labelledby],label[for],output[for]")]
      .flatMap((e) => (e.getAttribute("aria-labelledby") || e.htmlFor.toString()).split(" "))
      .filter((id) => !document.getElementById(id)),
    jumps: levels.filter((level, i) => level - (i ? levels[i - 1] : 0) > 1),
    heads: [...document.querySelectorAll("th")].filter((e) => !e.scope).length,
    outside: [...document.body.children]
      .filter((e) => !e.matches("header,main,footer,a.skip,script,[role=status]")).length,
    landmarks: document.querySelectorAll("section:is([aria-label], [aria-labelledby])").length,
    empty: [...document.querySelectorAll("th")].filter((e) => !e.textContent.trim()).length,
    same: [...document.querySelectorAll("[role=region]")].map((e) => e.getAttribute("aria-label"))
      .filter((label, i, all) => all.indexOf(label) !== i),
    language: document.documentElement.lang, title: !!document.title,
  };
})()
"""
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


def test_everything_has_a_name_and_a_place(tab: Tab, shown: Path) -> None:
    tab.open(shown)
    assert tab.value(UNNAMED) == {
        "unnamed": [], "twice": [], "broken": [], "jumps": [], "heads": 0, "outside": 0,
        "landmarks": 0, "empty": 0, "same": [], "language": "en", "title": True,
    }  # fmt: skip
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
