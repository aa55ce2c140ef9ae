"""Nodes that Slurm reports as broken."""

from __future__ import annotations

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.submissions.slurm.slurm_commands import call_slurm


def broken_nodes(cluster: SlurmEndpoint) -> tuple[str, ...]:
    """Return the nodes that are down, draining, drained or failing; none without an answer."""
    answer = call_slurm(
        cluster, "sinfo", "--Node", "--noheader", "--states=down,drain,fail", "--format=%N"
    )
    return tuple(sorted(set(answer.stdout.split())))
