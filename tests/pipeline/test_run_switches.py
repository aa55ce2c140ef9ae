"""Switches of runs in reports: asked of the controller once, stored, and never an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.log_selection import Search
from hpc_train.model.run import RunFolder
from hpc_train.pipeline.explain_run import explain_run
from hpc_train.pipeline.render import Request, prepare
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.report_provenance import provenance
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import submit
from tests.pipeline.bundles import packed
from tests.pipeline.on_slurm import RESULTS, age, says
from tests.pipeline.test_run_states import read_only
from tests.submissions.slurm.fake_slurm import FakeSlurm

START = 1_790_000_000.0
ROOT = Search(root=RESULTS)
STUDY = """\
name: s
job:
  command: [echo]
  launcher: srun
  resources: {tasks_per_node: 1, cpus_per_task: 1, gpus_per_node: 0, time: 5m}
axes: {nodes: [1, 2]}
repetitions: 2
scaling: weak
"""
TREE = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]
"""


def nodes_of(run: RunFolder) -> int:
    (found,) = (one for one in runs_below(run.path.parent) if one.folder == run)
    assert found.manifest is not None
    return found.manifest.plan.topology.nodes


@pytest.fixture
def home(slurm: FakeSlurm) -> Path:
    """Return the folder of a study whose runs on two nodes are on n2 and n3."""
    Path("study.yaml").write_text(STUDY)
    prepared = prepare(Request(path=Path("study.yaml"), site="slurm-generic"))
    runs = submit(prepared, RESULTS, []).new
    for run in runs:
        nodes = {1: "n1", 2: "n[2-3]"}[nodes_of(run)]
        says(run, started=START, ended=START + 60, exit_code=0, nodes=nodes)
        (run.logs / "rank-0.out").write_text('@hpct {"samples_per_second": 10}\n')
        age([run])
    slurm.forgets()
    return runs[0].path.parent


def controller(slurm: FakeSlurm, text: str, code: int = 0) -> None:
    (slurm.folder / "topology").write_text(text)
    slurm.on("scontrol", f"cat {slurm.folder}/topology; exit {code}")


def asked(slurm: FakeSlurm) -> int:
    return slurm.calls("scontrol").count(["show", "topology"])


def switches(home: Path) -> dict[str, tuple[int, int | None]]:
    found = report_inputs([str(home)], ROOT).switches
    return {name: (one.leaves, one.hops) for name, one in found.items()}


def two_nodes(home: Path) -> list[RunFolder]:
    return [run.folder for run in runs_below(home) if nodes_of(run.folder) == 2]


def test_one_question_and_its_answers_are_stored(slurm: FakeSlurm, home: Path) -> None:
    controller(slurm, TREE)
    expected = {run.run_id: (2, 3) for run in two_nodes(home)}
    assert expected
    assert switches(home) == expected
    assert asked(slurm) == 1
    # The network was changed; the runs were on the old one.
    controller(slurm, "")
    assert switches(home) == expected
    assert asked(slurm) == 1


def test_a_run_is_explained_with_its_nodes(slurm: FakeSlurm, home: Path) -> None:
    controller(slurm, TREE)
    run = two_nodes(home)[0]
    (node,) = (one for one in explain_run(run.path).items if one.kind == "node")
    assert (node.value, node.origin) == (["n2", "n3"], "Slurm")
    assert node.why == "on 2 leaf switches (3 hops)"
    facts = {fact.name: fact.values for fact in provenance(report_inputs([str(home)], ROOT))}
    assert facts["switches of the nodes"] == (("2 leaf switches (3 hops)", 2),)


def test_a_bundle_carries_them_and_asks_for_nothing(slurm: FakeSlurm, home: Path) -> None:
    controller(slurm, TREE)
    expected = {run.run_id: (2, 3) for run in two_nodes(home)}
    bundle = packed(home)
    assert switches(bundle) == expected
    assert asked(slurm) == 1


def test_a_cluster_without_a_topology_is_asked_once(slurm: FakeSlurm, home: Path) -> None:
    controller(slurm, "")
    assert switches(home) == switches(home) == {}
    assert asked(slurm) == 1


def test_without_an_answer_the_controller_is_asked_again(slurm: FakeSlurm, home: Path) -> None:
    controller(slurm, "", code=1)
    assert switches(home) == {}
    controller(slurm, TREE)
    assert set(switches(home)) == {run.run_id for run in two_nodes(home)}


@pytest.mark.parametrize("content", [b"", b"{", b'{"job": "1", "leaves": 7}'])
def test_a_damaged_file_or_one_of_another_job_is_replaced(
    slurm: FakeSlurm, home: Path, content: bytes
) -> None:
    controller(slurm, TREE)
    for run in two_nodes(home):
        run.switches.write_bytes(content)
    assert set(switches(home).values()) == {(2, 3)}


def test_what_cannot_be_stored_is_not_asked_for(slurm: FakeSlurm, home: Path) -> None:
    controller(slurm, TREE)
    assert report_inputs([str(home)], ROOT, runs=tuple(runs_below(home))).switches == {}
    with read_only(home):
        assert switches(home) == {}
    assert asked(slurm) == 0
