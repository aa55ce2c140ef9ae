"""The nodes of a run: their names, and those on which runs failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.base.node_names import node_names
from hpc_train.base.values import Value
from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.run import Run


def recorded_nodes(run: Run) -> str:
    """Return the node list that the job or the scheduler recorded, or the host of the job."""
    status, report = run.status, run.job_report
    names = (status.nodes if status else "") or (report.nodes if report else "")
    return names or (status.host if status else "")


def nodes_of(run: Run | None) -> tuple[str, ...]:
    """Return the names of the nodes of a run, sorted.

    Empty if they are not known: no list was recorded, or one of another number of nodes, as for a
    run on a part of its allocation.
    """
    manifest = run.manifest if run else None
    if run is None or manifest is None:
        return ()
    names = node_names(recorded_nodes(run))
    return tuple(sorted(names)) if len(names) == manifest.plan.topology.nodes else ()


# A node is repaired or replaced; what failed on it before says nothing then.
_REMEMBERED_S = 7 * 86400.0
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
    """Return the faults of the last seven days, by node, the latest first.

    The nodes with most of them are first.
    """
    by_node: dict[str, list[NodeFault]] = defaultdict(list)
    for run in runs:
        for fault in _faults(run):
            if now - fault.time < _REMEMBERED_S:
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
