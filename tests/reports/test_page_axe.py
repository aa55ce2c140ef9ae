"""What axe, the checker of accessibility, finds in a page."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import default_options, render_report
from tests.reports.chromium import Tab

pytestmark = pytest.mark.browser

pytest.importorskip("axe_core_python", reason="the package axe-core-python is not installed")

STRATEGIES = ("ddp", "ddp+bucket", "fsdp-full", "fsdp-grad", "fsdp-hybrid", "zero-1", "zero-2",
              "zero-3", "megatron-tp2", "pipeline-4")  # fmt: skip
HEAD = "strategy,nodes,gpus_per_node,samples_per_second,global_batch_size\n"


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
