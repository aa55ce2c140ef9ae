"""torchrun: one agent per node starts the ranks of its node; static rendezvous.

Static, because c10d ignores the node rank, and rank 0 would not be on MASTER_ADDR
(pytorch issue 137402). The interpreter of the command runs torchrun, so that both see one torch.
An elastic job needs c10d: there torchrun itself tells the ranks where rank 0 is.
"""

from __future__ import annotations

from hpc_train.model.job import Elastic
from hpc_train.model.plan import JobVar, Joined, Launch, LaunchRequest, Text, Token
from hpc_train.plans.launchers.base import agents, python_of, texts, wrapped_inside
from hpc_train.plans.launchers.flags import flag, has_flag

_ENDPOINT = Joined(parts=(JobVar(name="MASTER_ADDR"), Text(text=":"), JobVar(name="MASTER_PORT")))
# A requeued job has the same id, and must not meet what is left of the attempt before.
_MEETING = Joined(parts=(JobVar(name="SLURM_JOB_ID"), Text(text="."), JobVar(name="restarts")))
_IS_HOST = Joined(parts=(Text(text="is_host="), JobVar(name="is_host")))


def command(request: LaunchRequest) -> Launch:
    """Return `python -m torch.distributed.run …`, below srun on a cluster."""
    around = request.container.around if request.container else ()
    if request.scheduler != "slurm":
        return Launch(argv=agent_here(request), slots_per_node=1)
    elastic = request.elastic
    if elastic and request.topology.nodes > 1:
        argv = (*agents(request, (), *_outlive(elastic, request)), *wrapped_inside(request))
        agent = (*around, *_agent(request, _elastic(elastic, request)))
        return Launch(argv=argv, slots_per_node=1, agent=agent)
    if request.container:
        node_rank = (Text(text=flag("node-rank", request.torch)), JobVar(name="SLURM_NODEID"))
        agent = (*around, *_agent(request, (*_fixed(request), *node_rank)))
        argv = (*agents(request, ()), *wrapped_inside(request))
        return Launch(argv=argv, slots_per_node=1, agent=agent)
    argv = (*agents(request, _agent(request, _fixed(request))), *wrapped_inside(request))
    return Launch(argv=argv, slots_per_node=1)


def agent_here(request: LaunchRequest, *before: Token) -> tuple[Token, ...]:
    """Return argv for one node without Slurm; `before` stands before the program."""
    around = request.container.around if request.container else ()
    return (*around, *_agent(request, _fixed(request)), *wrapped_inside(request, *before))


def _agent(request: LaunchRequest, meeting: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the agent's words; what its torch does not have yet is left out."""
    python = python_of(request.command)
    numa = request.binding.numa
    binding = (
        (flag("numa-binding", request.torch), numa)
        if numa and has_flag("numa-binding", request.torch)
        else ()
    )
    return (
        *(texts(python, "-m", "torch.distributed.run") if python else texts("torchrun")),
        *meeting,
        *texts(*binding, *request.args, flag("no-python", request.torch)),
    )


def _fixed(request: LaunchRequest) -> tuple[Token, ...]:
    """Return the words of a job that keeps its nodes."""
    topology, torch = request.topology, request.torch
    restarts = request.elastic.max_restarts if request.elastic else 0
    return (
        *texts("--nnodes", topology.nodes),
        *texts(flag("nproc-per-node", torch), topology.tasks_per_node),
        *texts(flag("master-addr", torch)),
        JobVar(name="MASTER_ADDR"),
        *texts(flag("master-port", torch)),
        JobVar(name="MASTER_PORT"),
        *(texts(flag("max-restarts", torch), restarts) if restarts else ()),
    )


def _elastic(elastic: Elastic, request: LaunchRequest) -> tuple[Token, ...]:
    """Return the words of c10d; they expand on the node.

    `is_host`, because the agents would otherwise guess who opens the store from their own host
    names; `--local-addr`, because rank 0 may come to lie on any node and must be reached there.
    """
    torch = request.torch
    address = (Text(text=flag("local-addr", torch)), JobVar(name="node_address"))
    return (
        *texts("--nnodes", f"{elastic.min_nodes}:{elastic.max_nodes}"),
        *texts(flag("nproc-per-node", torch), request.topology.tasks_per_node),
        *texts(flag("max-restarts", torch), elastic.max_restarts),
        *texts(flag("rdzv-backend", torch), "c10d", flag("rdzv-endpoint", torch)),
        _ENDPOINT,
        *texts(flag("rdzv-id", torch)),
        _MEETING,
        *texts(flag("rdzv-conf", torch)),
        _IS_HOST,
        *(address if has_flag("local-addr", torch) else ()),
    )


def _outlive(elastic: Elastic, request: LaunchRequest) -> tuple[str, ...]:
    """Where fewer nodes will do, the loss of one must not end the step."""
    if (elastic.min_nodes or 0) >= request.topology.nodes:
        return ()
    return ("--no-kill", "--kill-on-bad-exit=0", "--wait=0")
