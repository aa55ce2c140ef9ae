"""Which nodes are bad, by which evidence, and for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpc_train.model.run import Failure, JobStatus, Run, RunFolder
from hpc_train.model.submission import JobState
from hpc_train.runs.node_faults import REMEMBERED_S, bad_nodes, node_faults

NOW = 1e9


def run(run_id: str, host: str = "", code: int = 1, **status: Any) -> Run:
    failure = Failure(rank=2, host=host, exit_code=code) if host else None
    told = {"started": NOW - 200, "ended": NOW - 100, "exit_code": code, "failure": failure}
    return Run(
        folder=RunFolder(path=Path(run_id)),
        manifest=None,
        submission=None,
        status=JobStatus(**{**told, **status}),
        state=JobState.FAILED,
    )


@pytest.mark.parametrize(
    ("runs", "bad"),
    [
        pytest.param([run("a", "n1.cluster")], (), id="a program fails anywhere"),
        pytest.param([run("a", "n1.cluster"), run("b", "n1")], ("n1",), id="twice"),
        pytest.param([run("a", "n1"), run("b", "n2")], (), id="on two nodes"),
        pytest.param([run("a", bad_nodes="n3,n4")], ("n3", "n4"), id="preflight"),
        pytest.param([run("a", "n1", 75), run("b", "n1", 75)], (), id="they saved and ended"),
        pytest.param(
            [run("a", "n1"), run("b", "n1", ended=NOW - REMEMBERED_S - 1)], (), id="long ago"
        ),
        pytest.param([run("a", "n1", exit_code=0), run("b", "n1")], (), id="it went on"),
    ],
)
def test_nodes_that_a_retry_leaves_out(runs: list[Run], bad: tuple[str, ...]) -> None:
    assert bad_nodes(node_faults(runs, NOW)) == bad


def test_the_evidence() -> None:
    runs = [run("a", "n1"), run("b", "n2", 137), run("c", "n2", ended=NOW - 50)]
    faults = node_faults(runs, NOW)
    assert list(faults) == ["n2", "n1"]
    assert [(one.run_id, one.time, one.text) for one in faults["n2"]] == [
        ("c", NOW - 50, "rank 2 failed first, exit code 1"),
        ("b", NOW - 100, "rank 2 failed first, exit code 137"),
    ]
    (fault,) = node_faults([run("a", "n1", bad_nodes="n3")], NOW)["n3"]
    assert (fault.text, fault.preflight) == ("preflight failed", True)
