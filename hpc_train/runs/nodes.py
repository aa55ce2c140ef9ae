"""The nodes of a run: their names, and those on which runs failed."""

from collections import Counter
from collections.abc import Iterator, Sequence

from hpc_train.base.node_names import node_names
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


def bad_nodes(runs: Sequence[Run], now: float) -> tuple[str, ...]:
    """Return the nodes that failed a preflight, or on which two starts failed first, by name.

    The faults of the last seven days count; `now` is in seconds since the epoch.
    """
    counts: Counter[str] = Counter()
    for run in runs:
        for node, time, weight in _faults(run):
            counts[node] += weight * (now - time < _REMEMBERED_S)
    return tuple(sorted(node for node, number in counts.items() if number >= _OFTEN))


def _faults(run: Run) -> Iterator[tuple[str, float, int]]:
    """Yield the node, the time and the weight of each fault of a run.

    They are those of the starts that were followed by another, and of its end.
    """
    for start in run.starts:
        if start.requeued and start.failed:
            yield start.failed, start.ended or start.started, 1
    status = run.status
    if status is None or status.exit_code == 0 or not run.state.finished:
        return
    when = status.ended or status.started
    failed = [name for name in status.bad_nodes.split(",") if name]
    yield from ((name, when, _OFTEN) for name in failed)
    failure = status.failure
    if failure is not None and failure.exit_code != RESUBMIT and not (failed or failure.lost_peer):
        yield failure.host.partition(".")[0], failure.time or when, 1
