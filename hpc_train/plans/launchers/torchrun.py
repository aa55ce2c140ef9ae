"""torchrun: one agent per node starts the ranks of its node; static rendezvous.

Static, because c10d ignores the node rank, and rank 0 would not be on MASTER_ADDR
(pytorch issue 137402). The interpreter of the command runs torchrun, so that both see one torch.
"""

from __future__ import annotations

from hpc_train.model.plan import JobVar, Launch, LaunchRequest, Token
from hpc_train.plans.launchers.base import NODE_WRAPPER, python_of, srun, texts, wrapped


def command(request: LaunchRequest) -> Launch:
    """Return `python -m torch.distributed.run …`, below srun on a cluster."""
    python = python_of(request.command)
    program = texts(python, "-m", "torch.distributed.run") if python else texts("torchrun")
    agent: tuple[Token, ...] = (
        *program,
        *texts("--nnodes", request.topology.nodes),
        *texts("--nproc-per-node", request.topology.tasks_per_node),
        *texts("--master-addr"),
        JobVar(name="MASTER_ADDR"),
        *texts("--master-port"),
        JobVar(name="MASTER_PORT"),
        *texts("--no-python"),
        *wrapped(request.command),
    )
    return Launch(argv=(*_per_node(request), *agent), slots_per_node=1)


def _per_node(request: LaunchRequest) -> tuple[Token, ...]:
    """Start one agent on each node; its node rank must expand there, not in the batch script.

    `--cpu-bind=none`: otherwise every rank inherits the agent's first core set.
    """
    if request.scheduler != "slurm":
        return ()
    agents = srun(request, 1, "--cpu-bind=none")
    return (*agents, *texts("bash", "-c"), NODE_WRAPPER, *texts("node"))
