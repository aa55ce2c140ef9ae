"""One process on each node of a job of PBS: by Cray PALS, by Open MPI, or by PBS itself.

PBS's own pbsdsh is not used: it ends with 0 although one of its processes failed.
"""

from __future__ import annotations

from hpc_train.plans.launchers.base import texts
from hpc_train.plans.plan import JobVar, LaunchRequest, Token

# The script defines it: a shell program around pbs_tmrsh, which passes on no variable.
_EACH_NODE = JobVar(name="each_node")


def by_tmrsh(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return the program of the script that starts its arguments on each node with pbs_tmrsh."""
    return (*texts("bash", "-c"), _EACH_NODE, *texts("each_node"))


def by_pals(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return Cray PALS's mpiexec with one process on each node, not bound to a core."""
    counts = ("-n", request.topology.nodes, "--ppn", 1)
    return texts("mpiexec", *counts, "--cpu-bind", "none")


def by_openmpi(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return Open MPI's mpirun with one process on each node, not bound to a core."""
    # Only a job that starts its nodes this way needs it.
    from hpc_train.plans.launchers.mpirun import hosts, passed_on

    return (
        *texts("mpirun", "-np", request.topology.nodes),
        *hosts(request),
        *texts("--map-by", "ppr:1:node", "--bind-to", "none"),
        *passed_on(request),
        *texts(*request.mpirun_args),
    )
