"""The nodes on which runs failed, with the evidence, and those that a resubmission leaves out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.base.value import Value
from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.run import Run
from hpc_train.runs.submission import SlurmEndpoint

_DEFAULT = SlurmEndpoint()
# A program fails on any node: one failure is no evidence against its node.
_OFTEN = 2


class NodeFault(Value, frozen=True, kw_only=True):
    """A failure of a run that began on a node, at a time in seconds since the epoch."""

    node: str
    run_id: str
    time: float
    text: str
    preflight: bool = False


def node_faults(runs: Sequence[Run], now: float) -> dict[str, tuple[NodeFault, ...]]:
    """Return the faults that the site of their run remembers, by node, the latest first.

    The nodes with most of them are first.
    """
    by_node: dict[str, list[NodeFault]] = defaultdict(list)
    for run in runs:
        remembered_s = (run.submission.cluster if run.submission else _DEFAULT).nodes_remembered_s
        for fault in _faults(run):
            if now - fault.time < remembered_s:
                by_node[fault.node].append(fault)
    order = sorted(by_node, key=lambda node: (-len(by_node[node]), node))
    return {node: tuple(sorted(by_node[node], key=lambda fault: -fault.time)) for node in order}


def bad_nodes(faults: Mapping[str, Sequence[NodeFault]]) -> tuple[str, ...]:
    """Return the nodes that failed a preflight, or on which two starts failed first."""
    return tuple(
        sorted(
            node
            for node, several in faults.items()
            if any(fault.preflight for fault in several) or len(several) >= _OFTEN
        )
    )


def _faults(run: Run) -> Iterator[NodeFault]:
    """Yield the faults of a run: of the starts that were followed by another, and of its end."""
    for start in run.starts:
        if start.requeued and start.failed:
            yield NodeFault(
                node=start.failed,
                run_id=run.folder.run_id,
                time=start.ended or start.started,
                text=f"a rank failed first in start {start.restart}, exit code {start.exit_code}",
            )
    status = run.status
    if status is None or status.exit_code == 0 or not run.state.finished:
        return
    when = status.ended or status.started
    failed = [name for name in status.bad_nodes.split(",") if name]
    for name in failed:
        yield NodeFault(
            node=name, run_id=run.folder.run_id, time=when, text="preflight failed", preflight=True
        )
    failure = status.failure
    if failure is not None and failure.exit_code != RESUBMIT and not (failed or failure.lost_peer):
        rank = "a rank" if failure.rank is None else f"rank {failure.rank}"
        yield NodeFault(
            node=failure.host.partition(".")[0],
            run_id=run.folder.run_id,
            time=failure.time or when,
            text=f"{rank} failed first, exit code {failure.exit_code}",
        )
