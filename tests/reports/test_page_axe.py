"""What axe, the checker of accessibility, finds in a page."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from tests.reports.chromium import Tab
from tests.reports.test_page_accessible import page

pytestmark = pytest.mark.browser

pytest.importorskip("axe_core_python", reason="the package axe-core-python is not installed")

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


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("page"), 10, 3)


def findings(tab: Tab) -> tuple[list[str], list[list[str]]]:
    """Return the rules that the shown page keeps, and what breaks the others."""
    tab.value(f"{FEWER};0")
    program = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    tab.value(f"{program};0")
    answer = tab.call("Runtime.evaluate", expression=FOUND, awaitPromise=True, returnByValue=True)
    result = json.loads(answer["result"]["value"])
    return result["kept"], result["broken"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(tab: Tab, shown: Path, scheme: str) -> None:
    tab.medium(scheme=scheme)
    tab.open(shown)
    kept, broken = findings(tab)
    tab.medium()
    assert broken == []
    assert {"color-contrast", "th-has-data-cells", "image-alt", "bypass"} <= set(kept)
