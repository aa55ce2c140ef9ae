"""The page as a browser shows it: nothing asked for, nothing too wide, all by keyboard.

Axe, the checker of accessibility, finds nothing in it.
"""

import json
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from hpc_train.reports.figures import MAIN, figures
from hpc_train.reports.figures.canvas import Measured
from hpc_train.reports.page.render import render
from hpc_train.reports.report import Figure
from hpc_train.scaling.measurements import node_frame
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.reports.chromium import Tab
from tests.reports.finished import finished
from tests.reports.whole import whole

pytestmark = pytest.mark.browser

# Of A4 between margins of 14 mm, at 96 dots per inch.
PAPER = 688
TOO_WIDE = """
(() => {
  const room = document.documentElement.clientWidth;
  const inner = (e) => e.parentElement && e.parentElement.closest(".scroll");
  return [...document.body.querySelectorAll("*")]
    .filter((e) => e.getBoundingClientRect().right > room + 1)
    .filter((e) => getComputedStyle(e.closest(".scroll") || e).overflowX === "visible")
    .map((e) => e.outerHTML.slice(0, 80))
    .concat(document.documentElement.scrollWidth > room ? ["the page"] : []);
})()
"""
REGIONS = """
[...document.querySelectorAll("[role=region], summary, a[href], button, input")]
  .filter((e) => e.checkVisibility({ contentVisibilityAuto: true }))
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = whole()
    drawn = msgspec.structs.replace(made, figures=(_figure(), *made.figures))
    path = tmp_path_factory.mktemp("page") / "r.html"
    path.write_text(render(drawn), encoding="utf-8")
    return path


def _figure() -> Figure:
    study, records = finished()
    runs = run_frame(study, records)
    measured = Measured(runs, speedup_frame(runs, study), (), node_frame(study, records))
    return figures(study, measured, ("svg",), (MAIN,))[0]


def test_the_browser_tells_of_faults(tab: Tab, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<body><img src='near.png'><p style='width:2000px'>wide"
        "<script>console.error('a'); missing()</script>"
    )
    tab.open(bad)
    assert tab.requests == [bad.as_uri(), (tmp_path / "near.png").as_uri()]
    assert len(tab.complaints) == 3
    assert len(tab.value(TOO_WIDE)) == 2
    tab.complaints.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_asked_for_and_nothing_too_wide(
    tab: Tab, page: Path, width: int, scheme: str
) -> None:
    tab.medium(scheme=scheme)
    tab.open(page, width)
    assert tab.value(TOO_WIDE) == []
    tab.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.value(TOO_WIDE) == []
    assert [one for one in tab.requests if not one.startswith("data:")] == [page.as_uri()]
    assert tab.complaints == []
    dark = tab.value("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark is (scheme == "dark")
    tab.medium()


def test_the_keyboard_reaches_everything(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    count = tab.value(f"(window.left = new Set({REGIONS})).size")
    assert count > 40
    tab.press("Tab")
    assert tab.value("document.activeElement.className") == "skip"
    for _ in range(count):
        visible = "getComputedStyle(document.activeElement).outlineStyle"
        assert tab.value(f"left.delete(document.activeElement); {visible}") == "solid"
        tab.press("Tab")
    assert tab.value("[...left].map((e) => e.outerHTML.slice(0, 90))") == []


def test_runs_are_found_and_sorted(tab: Tab, page: Path) -> None:
    tab.open(page)
    names = "[...document.querySelectorAll('.all tbody tr:not([hidden])')].map((r) => r.id)"
    assert tab.value(names) == [f"r{i}" for i in range(1, 19)]
    type_in = "filter.value = {!r}; filter.dispatchEvent(new Event('input'))"
    tab.value(type_in.format("torchrun FAILED"))
    assert tab.value(names) == ["r16"]
    assert tab.value("found.textContent") == "1 of 18"
    tab.value("location.hash = '#r2'")
    while tab.value("filter.value"):
        pass
    assert len(tab.value(names)) == 18
    head = "[...document.querySelectorAll('.all button')].find((b) => b.textContent == 'samples/s')"
    tab.value(f"{head}.click()")
    assert tab.value(names)[:2] == ["r1", "r10"]
    assert tab.value(names)[-3:] == ["r16", "r17", "r18"]
    tab.value(f"{head}.click()")
    assert tab.value(names)[0] == "r9"
    assert tab.value(names)[-3:] == ["r16", "r17", "r18"]
    assert tab.value(f"{head}.parentNode.ariaSort") == "descending"


def test_on_paper_everything_is_open_and_within_the_margins(tab: Tab, page: Path) -> None:
    tab.medium("print")
    tab.open(page, PAPER)
    assert tab.value(TOO_WIDE) == []
    diagnoses = "[...document.querySelectorAll('pre')].map((e) => e.checkVisibility())"
    assert tab.value(diagnoses) == [True] * 2
    assert tab.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    # A last page has more than the footer.
    footer = "getComputedStyle(document.querySelector('footer')).breakBefore"
    assert tab.value(footer) == "avoid"
    tab.medium()
    tab.open(page)
    assert tab.paper().startswith(b"%PDF")


def test_the_page_needs_no_script(tab: Tab, page: Path) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(page)
    assert tab.value("document.getElementById('filter').checkVisibility()") is False
    assert tab.value("document.querySelectorAll('.all tbody tr').length") == 18
    tab.call("Emulation.setScriptExecutionDisabled", value=False)


# Rows, labels of axes and runs are alike, and axe needs minutes for thousands of elements.
FEWER = """
document.querySelectorAll("details").forEach((one) => { one.open = true; });
for (const [many, few] of [["tbody", 8], ["#runs", 8]])
  document.querySelectorAll(many).forEach((one) => {
    [...one.children].slice(few).forEach((child) => child.remove());
  });
"""
FOUND = """
axe.run(document).then((result) => JSON.stringify({
  kept: result.passes.map((one) => one.id),
  broken: result.violations.map((one) =>
    [one.id, one.impact, one.nodes[0].html.slice(0, 200), one.nodes[0].failureSummary]),
}))
"""


def findings(tab: Tab) -> tuple[list[str], list[list[str]]]:
    """Return the rules that the shown page keeps, and what breaks the others."""
    tab.value(f"{FEWER};0")
    reason = "the package axe-core-python is not installed"
    pytest.importorskip("axe_core_python", reason=reason)
    program = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    tab.value(f"{program};0")
    answer = tab.call("Runtime.evaluate", expression=FOUND, awaitPromise=True, returnByValue=True)
    result = json.loads(answer["result"]["value"])
    return result["kept"], result["broken"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(tab: Tab, page: Path, scheme: str) -> None:
    tab.medium(scheme=scheme)
    tab.open(page)
    kept, broken = findings(tab)
    tab.medium()
    assert broken == []
    assert {"color-contrast", "th-has-data-cells", "image-alt", "bypass"} <= set(kept)
