"""What a checker of accessibility computes from a page: names, labels, contrast; the fold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs, selection
from hpc_train.pipeline.write_report import default_options, render_report
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
    roleless: document.querySelectorAll("svg [aria-label]:not([role])").length,
    language: document.documentElement.lang, title: !!document.title,
  };
})()
"""
UNLINKED = """
[...document.querySelectorAll("main section[id]")].map((e) => e.id)
  .filter((id) => !document.querySelector(`nav a[href="#${id}"]`))
"""
# Regions that can be scrolled sideways without a shade at their edge.
NO_CUE = """
[...document.querySelectorAll("main *")].filter((e) => e.scrollWidth > e.clientWidth + 1)
  .filter((e) => !["visible", "hidden"].includes(getComputedStyle(e).overflowX))
  .filter((e) => getComputedStyle(e).backgroundImage.split("linear-gradient").length !== 5)
  .map((e) => e.outerHTML.slice(0, 90))
"""


TABLE_CUES = """
[...document.querySelectorAll(".scroll:has(> table)")].filter((e) => e.checkVisibility())
  .map((e) => [e.scrollWidth > e.clientWidth + 1, e.previousElementSibling.checkVisibility(),
               e.ariaLabel])
"""
CUES = """
[...document.querySelectorAll(".drawing")].map((e) =>
  [e.scrollWidth > e.clientWidth, e.nextElementSibling.checkVisibility()])
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
    inputs = report_inputs((str(source),), selection(folder))
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
        "landmarks": 0, "empty": 0, "same": [], "roleless": 0, "language": "en", "title": True,
    }  # fmt: skip
    assert tab.value(UNLINKED) == []


def test_the_first_figure_is_above_the_fold(tab: Tab, shown: Path) -> None:
    tab.open(shown)
    tab.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1,
             mobile=False)  # fmt: skip
    box = "document.querySelector('.drawing').getBoundingClientRect()"
    assert tab.value(f"{box}.top") > 100
    assert tab.value(f"{box}.bottom") <= 800
    assert tab.value(f"{box}.height") > 300


def test_what_can_be_scrolled_sideways_shows_it(tab: Tab, shown: Path) -> None:
    tab.open(shown, 390)
    assert tab.value("document.querySelector('.drawing').scrollWidth") > 390
    assert tab.value(NO_CUE) == []


@pytest.mark.parametrize("width", [390, 900])
def test_only_a_figure_that_is_cut_says_how_to_see_all(tab: Tab, shown: Path, width: int) -> None:
    tab.open(shown, width)
    cues = tab.value(CUES)
    assert all(cut is said for cut, said in cues)
    assert any(cut for cut, _ in cues) is (width < 800)


@pytest.mark.parametrize("width", [390, 1280])
def test_only_a_table_that_is_cut_says_how_to_see_all(tab: Tab, shown: Path, width: int) -> None:
    tab.open(shown, width)
    # What the observer of sizes says comes with the next frame.
    frame = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(1), 0)))"
    tab.call("Runtime.evaluate", expression=frame, awaitPromise=True)
    cues = tab.value(TABLE_CUES)
    assert all(cut is said for cut, said, _ in cues)
    assert ["Points"] * (width == 390) == [
        name for cut, _, name in cues if cut and name == "Points"
    ]
    assert not all(cut for cut, *_ in cues)


def test_a_mark_under_an_interval_has_its_tooltip(tab: Tab, shown: Path) -> None:
    tab.open(shown)
    marks = "document.querySelectorAll('svg [aria-label]')"
    assert tab.value(f"{marks}.length") > 20
    means = f"[...{marks}].filter((e) => e.getAttribute('aria-label').includes('mean of'))"
    tab.value("window.place = (e) => { const b = e.getBoundingClientRect();"
              "return [b.x + b.width / 2, b.y + b.height / 2]; }")  # fmt: skip
    missed = tab.value(
        f"{means}.slice(0, 5).map((e) => [e, document.elementFromPoint(...place(e))])"
        ".filter(([e, found]) => !found.closest('[aria-label*=\"mean of\"]')).length"
    )
    assert missed == 0
    tab.point(*tab.value(f"place({means}[0])"))
    assert "mean of" in tab.value("document.getElementById('hover').textContent")


def test_paper_shows_what_is_closed_on_the_screen(tab: Tab, shown: Path) -> None:
    tab.medium("print", scheme="dark")
    tab.open(shown, 688)
    closed = "[...document.querySelectorAll('details:not(.unprinted, .unprinted *) > :last-child')]"
    assert tab.value(f"{closed}.filter((e) => !e.checkVisibility()).length") == 0
    white = "getComputedStyle(document.body).backgroundColor"
    assert tab.value(white) in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    ink = "getComputedStyle(document.querySelector('svg text')).fill"
    assert tab.value(ink) == "rgb(0, 0, 0)"
    unseen = "document.querySelector('.unseen')"
    assert tab.value(f"{unseen}.checkVisibility()") is True
    assert "the numbers behind the figures" in tab.value(f"{unseen}.textContent")
    runs = tab.value("document.querySelectorAll('.all tbody tr').length")
    printed = tab.value("document.getElementById('runs').checkVisibility()")
    assert printed is (f"the table of all {runs:,} runs" not in tab.value(f"{unseen}.textContent"))
    tab.medium()
