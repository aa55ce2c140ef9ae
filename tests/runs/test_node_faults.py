"""Which nodes are bad, by which evidence, and for how long."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.runs.nodes import bad_nodes
from hpc_train.runs.run import Failure, JobStart, JobState, JobStatus, Run, RunFolder

NOW = 1e9
DAY_S = 86400.0


def run(run_id: str, host: str = "", code: int = 1, lost: bool = False, **status: Any) -> Run:
    failure = Failure(rank=2, host=host, exit_code=code, lost_peer=lost) if host else None
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
            [run("a", "n1"), run("b", "n1", ended=NOW - 7 * DAY_S - 1)], (), id="long ago"
        ),
        pytest.param([run("a", "n1", lost=True), run("b", "n1")], (), id="another rank was lost"),
        pytest.param([run("a", "n1", exit_code=0), run("b", "n1")], (), id="it went on"),
    ],
)
def test_nodes_that_a_retry_leaves_out(runs: list[Run], bad: tuple[str, ...]) -> None:
    assert bad_nodes(runs, NOW) == bad


def starts(*failed: str, requeued: bool = True, **fields: Any) -> Run:
    """Return a job that goes on, after starts in which a rank failed first on these nodes."""
    earlier = tuple(
        JobStart(restart=n, started=NOW - 60, ended=NOW - 50, exit_code=1, failed=node,
                 requeued=requeued, **fields)
        for n, node in enumerate(failed)
    )  # fmt: skip
    going = msgspec.structs.replace(run("j"), state=JobState.RUNNING, starts=earlier)
    return msgspec.structs.replace(going, status=JobStatus(started=NOW - 40))


@pytest.mark.parametrize(
    ("found", "bad"),
    [
        pytest.param(starts("n1", "n2"), (), id="each once"),
        pytest.param(starts("n1", "n2", "n1"), ("n1",), id="twice"),
        pytest.param(starts("n1", "n1", requeued=False), (), id="the end counts by itself"),
    ],
)
def test_the_starts_of_a_job_are_evidence(found: Run, bad: tuple[str, ...]) -> None:
    assert bad_nodes([found], NOW) == bad
