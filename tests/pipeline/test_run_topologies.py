"""Topologies of runs in reports and comparisons: read from what the jobs stored, never an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.model.log_selection import Search
from hpc_train.model.run import RunFolder
from hpc_train.pipeline.compare import CompareOptions, compare
from hpc_train.pipeline.render import Request, prepare
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.submit import submit
from tests.pipeline.bundles import packed
from tests.pipeline.on_slurm import RESULTS, age, says
from tests.probe.machines import output
from tests.submissions.slurm.fake_slurm import FakeSlurm

START = 1_790_000_000.0
ROOT = Search(root=RESULTS)
STUDY = """\
name: s
job:
  command: [echo]
  launcher: srun
  resources: {nodes: 2, tasks_per_node: 1, cpus_per_task: 1, gpus_per_node: 0, time: 5m}
axes: {env.X: [1, 2]}
scaling: weak
"""
LINKS = "links between GPUs (8 GPUs)"


@pytest.fixture
def runs(slurm: FakeSlurm) -> list[RunFolder]:
    """Return two runs on the nodes n1 and n2, which stored the topology of a DGX A100 each."""
    Path("study.yaml").write_text(STUDY)
    runs = submit(prepare(Request(path=Path("study.yaml"), site="slurm-generic")), RESULTS, []).new
    for run in runs:
        says(run, started=START, ended=START + 60, exit_code=0, nodes="n[1-2]")
        (run.logs / "rank-0.out").write_text('@hpct {"samples_per_second": 10}\n')
        age([run])
        for node in ("n1.cluster", "n2"):
            stores(run, node, output("dgx_a100"))
    return list(runs)


def stores(run: RunFolder, node: str, text: str) -> None:
    run.topology.mkdir(exist_ok=True)
    (run.topology / f"{node}.txt").write_text(text)


def said(runs: list[RunFolder], source: Path | None = None) -> list[str]:
    """Return the caveats on topologies of the report on the study, or on a bundle of it."""
    report = build_report(report_inputs([str(source or runs[0].path.parent)], ROOT))
    return [line for line in report.summary if "different topology" in line]


def test_equal_nodes_are_a_fact_and_no_caveat(runs: list[RunFolder]) -> None:
    inputs = report_inputs([str(runs[0].path.parent)], ROOT)
    assert [node.host for node in inputs.topologies[runs[0].run_id]] == ["n1.cluster", "n2"]
    assert said(runs) == []
    (fact,) = [one for one in build_report(inputs).provenance if one.name == "node topology"]
    text = "8 x NVIDIA A100-SXM4-40GB, 8 NUMA nodes, 10 network adapters"
    assert fact.values == ((text, len(runs)),)


def test_a_node_of_another_kind_is_named(runs: list[RunFolder]) -> None:
    stores(runs[1], "n2", output("dgx_h100"))
    (caveat,) = said(runs)
    assert f"{LINKS}: 28 x NV12 on 2 nodes, 28 x NV18 on n2 ({runs[1].run_id})" in caveat


def test_a_comparison_shows_what_differs(runs: list[RunFolder]) -> None:
    for node in ("n1.cluster", "n2"):
        stores(runs[1], node, output("dgx_h100"))
    found = compare(str(runs[0].path), str(runs[1].path), ROOT, CompareOptions())
    (table,) = [one for one in found.report.tables if one.title.startswith("Settings")]
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [f"topology: {LINKS}", "28 x NV12", "28 x NV18"] in rows


def test_a_bundle_carries_them(runs: list[RunFolder]) -> None:
    stores(runs[1], "n2", output("dgx_h100"))
    before = said(runs)
    assert before
    assert said(runs, packed(runs[0].path.parent)) == before


def test_nodes_of_an_earlier_start_are_left_out(runs: list[RunFolder]) -> None:
    stores(runs[1], "n7", output("dgx_h100"))
    assert said(runs) == []


def test_what_cannot_be_read_is_no_error(runs: list[RunFolder]) -> None:
    folder = runs[1].topology
    (folder / "n1.cluster.txt").unlink()
    os.mkfifo(folder / "n1.cluster.txt")
    (folder / "n2.txt").write_bytes(b"\xff@@hpctrain nvidia_topology\n\0")
    assert said(runs) == []
