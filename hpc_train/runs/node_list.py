"""A run -> the names of the nodes it ran on."""

from __future__ import annotations

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
    # Commands that read no runs need no names.
    from hpc_train.base.node_names import node_names

    manifest = run.manifest if run else None
    if run is None or manifest is None:
        return ()
    names = node_names(recorded_nodes(run))
    return tuple(sorted(names)) if len(names) == manifest.plan.topology.nodes else ()
