"""Laws in a report: every fit is said, with its limits or why there is none."""

import json
from collections.abc import Sequence
from pathlib import Path

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report import ReportOptions
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import render_report

NOISE = (0.99, 1.0, 1.012)


def _csv(folder: Path, nodes: Sequence[int], shift: Sequence[float] = NOISE) -> str:
    """Write a table of 3 runs at each size, with 1 % noise and a shift of each size."""
    lines = ["nodes,gpus_per_node,tasks_per_node,global_batch_size,samples_per_second"]
    for i, n in enumerate(nodes):
        ideal = 1000 * n / (1 + 0.02 * (n - 1) + 1e-4 * n * (n - 1)) * shift[i % 3]
        lines += [f"{n},4,4,4096,{ideal * NOISE[(i + k) % 3]:.2f}" for k in range(3)]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def _report(path: str, form: str = "text", asked: ReportOptions | None = None) -> str:
    found = report_inputs([path], Search(root=Path("results")))
    return render_report(build_report(found, asked or ReportOptions()), form)


def test_a_peak_that_nothing_bounds_is_told_in_words(tmp_path: Path) -> None:
    path = _csv(tmp_path, (1, 2, 4, 8), (1.0,) * 3)
    amdahl = json.loads(_report(path, "json"))["laws"][0]
    assert "peak" not in amdahl
    assert amdahl["no_peak"].startswith("stays below ")
    assert f"none: {amdahl['no_peak']}" in " ".join(_report(path).split())


def test_too_few_sizes_make_no_table_but_are_said_to_programs(tmp_path: Path) -> None:
    path = _csv(tmp_path, (1, 2))
    assert "Laws" not in _report(path)
    laws = json.loads(_report(path, "json"))["laws"]
    assert [law["refused"] for law in laws] == [
        "needs 3 sizes, there are 2", "needs 6 sizes, there are 2",
    ]  # fmt: skip


def test_a_law_that_does_not_fit_is_refused_with_its_reason(tmp_path: Path) -> None:
    path = _csv(tmp_path, (1, 2, 4, 8), (1.0, 0.7, 1.0))
    shown = " ".join(_report(path).split())
    assert "Laws that are not shown: Amdahl: does not fit: residual" in shown
    assert "Laws parameters" not in shown
    assert "between runs (F test, p < 0.001); USL: needs 6 sizes, there are 4" in shown
    amdahl = json.loads(_report(path, "json"))["laws"][0]
    assert amdahl["lack_of_fit_p"] < 0.001
    assert amdahl["parameters"] == {}
