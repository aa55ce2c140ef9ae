"""torchrun: one agent per node starts the ranks of its node; static rendezvous.

Static, because c10d ignores the node rank, and rank 0 would not be on MASTER_ADDR
(pytorch issue 137402). The interpreter of the command runs torchrun, so that both use one torch.
An elastic job needs c10d: torchrun then sends the address of rank 0 to the ranks.
"""

from __future__ import annotations

from hpc_train.base.value import parts, within
from hpc_train.jobs.job import Elastic
from hpc_train.plans.explanations import Reason
from hpc_train.plans.launchers.base import (
    SRUN,
    Launcher,
    Program,
    agents,
    node_rank,
    python_of,
    texts,
    wrapped_inside,
)
from hpc_train.plans.plan import (
    Definition,
    JobVar,
    Joined,
    Launch,
    LaunchRequest,
    LaunchShell,
    Text,
    Token,
)

_ENDPOINT = Joined(parts=(JobVar(name="MASTER_ADDR"), Text(text=":"), JobVar(name="MASTER_PORT")))
_IS_HOST = Joined(parts=(Text(text="is_host="), JobVar(name="is_host")))
# The first version of torch with the option; an unknown version gets options that all have.
_SINCE = {"local-addr": ">=2.0", "numa-binding": ">=2.9"}
_SUPPORTED = "2.4"
_DASHES = ">=2.0"


def command(request: LaunchRequest) -> Launch:
    """Return `python -m torch.distributed.run …`, below srun on a cluster."""
    around = request.container.around if request.container else ()
    shell = LaunchShell(module="torch" if python_of(request.command) else "")
    if not request.batch.starter:
        return Launch(argv=agent_here(request), slots_per_node=1, shell=shell)
    elastic = request.elastic
    if elastic and request.topology.nodes > 1:
        argv = (*agents(request, (), *_outlive(elastic, request)), *wrapped_inside(request))
        agent = (*around, *_agent(request, _elastic(elastic, request)))
        return Launch(argv=argv, slots_per_node=1, agent=agent, shell=shell)
    if request.container:
        number = (Text(text=_option("node-rank", request.torch)), node_rank(request))
        agent = (*around, *_agent(request, (*_fixed(request), *number)))
        argv = (*agents(request, ()), *wrapped_inside(request))
        return Launch(argv=argv, slots_per_node=1, agent=agent, shell=shell)
    argv = (*agents(request, _agent(request, _fixed(request))), *wrapped_inside(request))
    shell = LaunchShell(definitions=(_node_wrapper(request),), module=shell.module)
    return Launch(argv=argv, slots_per_node=1, shell=shell)


def agent_here(request: LaunchRequest, *before: Token) -> tuple[Token, ...]:
    """Return argv for one node without Slurm; `before` precedes the program."""
    around = request.container.around if request.container else ()
    return (*around, *_agent(request, _fixed(request)), *wrapped_inside(request, *before))


def _agent(request: LaunchRequest, meeting: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the agent's options, without those that its version of torch lacks."""
    python = python_of(request.command)
    numa = request.binding.numa
    binding = (
        (_option("numa-binding", request.torch), numa)
        if numa and _has_option("numa-binding", request.torch)
        else ()
    )
    return (
        *(texts(python, "-m", "torch.distributed.run") if python else texts("torchrun")),
        *meeting,
        *texts(*binding, *request.args, _option("no-python", request.torch)),
    )


def _fixed(request: LaunchRequest) -> tuple[Token, ...]:
    """Return the options of a job with a fixed number of nodes."""
    topology, torch = request.topology, request.torch
    restarts = request.elastic.max_restarts if request.elastic else 0
    return (
        *texts("--nnodes", topology.nodes),
        *texts(_option("nproc-per-node", torch), topology.tasks_per_node),
        *texts(_option("master-addr", torch)),
        JobVar(name="MASTER_ADDR"),
        *texts(_option("master-port", torch)),
        JobVar(name="MASTER_PORT"),
        *(texts(_option("max-restarts", torch), restarts) if restarts else ()),
    )


def _elastic(elastic: Elastic, request: LaunchRequest) -> tuple[Token, ...]:
    """Return the options of c10d; they expand on the node.

    `is_host`, because the agents would otherwise derive the host of the store from their own host
    names; `--local-addr`, because rank 0 may run on any node and must be reachable.
    """
    torch = request.torch
    address = (Text(text=_option("local-addr", torch)), JobVar(name="node_address"))
    return (
        *texts("--nnodes", f"{elastic.min_nodes}:{elastic.max_nodes}"),
        *texts(_option("nproc-per-node", torch), request.topology.tasks_per_node),
        *texts(_option("max-restarts", torch), elastic.max_restarts),
        *texts(_option("rdzv-backend", torch), "c10d", _option("rdzv-endpoint", torch)),
        _ENDPOINT,
        *texts(_option("rdzv-id", torch)),
        # A requeued job has the same id, and must not join the rendezvous of the previous attempt.
        Joined(parts=(JobVar(name=request.batch.job_id), Text(text="."), JobVar(name="restarts"))),
        *texts(_option("rdzv-conf", torch)),
        _IS_HOST,
        *(address if _has_option("local-addr", torch) else ()),
    )


def _node_wrapper(request: LaunchRequest) -> Definition:
    number = request.batch.rank_of_node
    return Definition(
        name="node_wrapper",
        text=f'export PET_NODE_RANK={number}; trap "" USR1 USR2; exec "$@"',
        comments=(
            "The node rank expands on its node; the agent ignores the signals that are meant for "
            "the ranks.",
        ),
    )


def _outlive(elastic: Elastic, request: LaunchRequest) -> tuple[str, ...]:
    """If the job can continue with fewer nodes, the loss of a node must not end the step."""
    if (elastic.min_nodes or 0) >= request.topology.nodes:
        return ()
    return ("--no-kill", "--kill-on-bad-exit=0", "--wait=0")


def _has_option(name: str, torch: str | None) -> bool:
    """Return whether torchrun of a version of torch has an option."""
    return name not in _SINCE or within(parts(torch or _SUPPORTED), _SINCE[name])


def _option(name: str, torch: str | None) -> str:
    """Return the spelling of an option for a version of torch: older ones accept underscores
    only."""
    dashes = within(parts(torch or _SUPPORTED), _DASHES)
    return f"--{name}" if dashes else f"--{name.replace('-', '_')}"


TORCHRUN = Program(
    name="torchrun",
    words=("torch.distributed.run", "torch.distributed.launch"),
    options={
        "--nnodes": Reason(why="a fixed number of agents, one on each node"),
        "--nproc-per-node": Reason(why="the ranks that an agent starts"),
        "--node-rank": Reason(why="expands on the node, not in the batch script", trap="F14"),
        "--master-addr": Reason(why="static rendezvous: rank 0 is where this says", trap="F13"),
        "--master-port": Reason(why="free on rank 0's host when the job starts", trap="F11"),
        "--no-python": Reason(
            why="each rank is started behind hpctrain's rank wrapper", trap="F24"
        ),
    },
)
_ITSELF = "standalone rdzv-backend rdzv-endpoint rdzv-id node-rank master-addr master-port"
LAUNCHER = Launcher(
    command=command,
    programs=(SRUN, TORCHRUN),
    through_srun=True,
    elastic=True,
    typed={
        "nproc-per-node": "--tasks-per-node",
        "nnodes": "--nodes",
        **dict.fromkeys(_ITSELF.split(), ""),
    },
)
