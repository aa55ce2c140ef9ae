"""torchrun and accelerate: one agent per node starts the ranks of its node; static rendezvous.

Static, because c10d ignores the node rank, and rank 0 would not be on MASTER_ADDR
(pytorch issue 137402). The interpreter of the command runs torchrun, so that both use one torch.
An elastic job needs c10d: torchrun then sends the address of rank 0 to the ranks. `accelerate
launch` is torchrun's agent with other options.
"""

from hpc_train.base.values import parts, within
from hpc_train.jobs.job import Elastic
from hpc_train.plans.launchers.base import (
    Launcher,
    agents,
    node_rank,
    only_rank,
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
# The first version of torch with --numa-binding, and the one that is meant if none is stated.
_BINDS, _SUPPORTED = ">=2.9", "2.4"


def torchrun(request: LaunchRequest) -> Launch:
    """Return `python -m torch.distributed.run …`, below srun on a cluster."""
    around = request.container.around if request.container else ()
    shell = LaunchShell(module="torch" if python_of(request.command) else "")
    if not request.batch.starter:
        return Launch(argv=agent_here(request), slots_per_node=1, shell=shell)
    elastic = request.elastic
    if elastic and request.topology.nodes > 1:
        # If the job can continue with fewer nodes, the loss of a node must not end the step.
        spare = (elastic.min_nodes or 0) < request.topology.nodes
        outlive = ("--no-kill", "--kill-on-bad-exit=0", "--wait=0") if spare else ()
        argv = (*agents(request, (), *outlive), *wrapped_inside(request))
        agent = (*around, *_torchrun_agent(request, _elastic(elastic, request)))
        return Launch(argv=argv, slots_per_node=1, agent=agent, shell=shell)
    if request.container:
        number = (Text(text="--node-rank"), node_rank(request))
        agent = (*around, *_torchrun_agent(request, (*_fixed(request), *number)))
        argv = (*agents(request, ()), *wrapped_inside(request))
        return Launch(argv=argv, slots_per_node=1, agent=agent, shell=shell)
    argv = (*agents(request, _torchrun_agent(request, _fixed(request))), *wrapped_inside(request))
    wrapper = Definition(
        name="node_wrapper",
        text=f'export PET_NODE_RANK={request.batch.rank_of_node}; trap "" USR1 USR2; exec "$@"',
        comments=(
            "The node rank expands on its node; the agent ignores the signals that are meant for "
            "the ranks.",
        ),
    )
    shell = LaunchShell(definitions=(wrapper,), module=shell.module)
    return Launch(argv=argv, slots_per_node=1, shell=shell)


def agent_here(request: LaunchRequest, *before: Token) -> tuple[Token, ...]:
    """Return argv for one node without Slurm; `before` precedes the program."""
    around = request.container.around if request.container else ()
    return (*around, *_torchrun_agent(request, _fixed(request)), *wrapped_inside(request, *before))


def _torchrun_agent(request: LaunchRequest, meeting: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the agent's options, without the binding that its version of torch lacks."""
    python, numa = python_of(request.command), request.binding.numa
    binds = numa and within(parts(request.torch or _SUPPORTED), _BINDS)
    return (
        *(texts(python, "-m", "torch.distributed.run") if python else texts("torchrun")),
        *meeting,
        *(texts("--numa-binding", numa) if numa and binds else ()),
        *texts(*request.args, "--no-python"),
    )


def _fixed(request: LaunchRequest) -> tuple[Token, ...]:
    """Return the options of a job with a fixed number of nodes."""
    topology = request.topology
    restarts = request.elastic.max_restarts if request.elastic else 0
    return (
        *texts("--nnodes", topology.nodes, "--nproc-per-node", topology.tasks_per_node),
        *texts("--master-addr"),
        JobVar(name="MASTER_ADDR"),
        *texts("--master-port"),
        JobVar(name="MASTER_PORT"),
        *(texts("--max-restarts", restarts) if restarts else ()),
    )


def _elastic(elastic: Elastic, request: LaunchRequest) -> tuple[Token, ...]:
    """Return the options of c10d; they expand on the node.

    `is_host`, because the agents would otherwise derive the host of the store from their own host
    names; `--local-addr`, because rank 0 may run on any node and must be reachable.
    """
    return (
        *texts("--nnodes", f"{elastic.min_nodes}:{elastic.max_nodes}"),
        *texts("--nproc-per-node", request.topology.tasks_per_node),
        *texts("--max-restarts", elastic.max_restarts, "--rdzv-backend", "c10d"),
        *texts("--rdzv-endpoint"),
        _ENDPOINT,
        *texts("--rdzv-id"),
        # A requeued job has the same id, and must not join the rendezvous of the previous attempt.
        Joined(parts=(JobVar(name=request.batch.job_id), Text(text="."), JobVar(name="restarts"))),
        *texts("--rdzv-conf"),
        _IS_HOST,
        *texts("--local-addr"),
        JobVar(name="node_address"),
    )


_OF_TORCHRUN = "standalone rdzv-backend rdzv-endpoint rdzv-id node-rank master-addr master-port"
TORCHRUN = Launcher(
    command=torchrun,
    programs=("srun", "torchrun"),
    through_srun=True,
    elastic=True,
    typed={
        "nproc-per-node": "--tasks-per-node",
        "nnodes": "--nodes",
        **dict.fromkeys(_OF_TORCHRUN.split(), ""),
    },
)


# With one of these options, accelerate reads the training type elsewhere and refuses ours.
_OWN_WAY = ("--config_file", "--use_", "--multi_gpu", "--cpu", "--tpu")


def accelerate(request: LaunchRequest) -> Launch:
    """Return `accelerate launch …` with the command's Python, under srun on a cluster.

    The machine rank must expand on its node: in the batch script it would be 0 everywhere.
    """
    around = request.container.around if request.container else ()
    agent = (*around, *_accelerate_agent(request, node_rank(request)))
    # A single process is started without torch's agent, which would have set its variables.
    rank_env = only_rank() if request.topology.world_size == 1 else ()
    shell = LaunchShell(module="accelerate" if python_of(request.command) else "")
    if not request.batch.starter:
        argv = (*agent, *wrapped_inside(request))
        return Launch(argv=argv, rank_env=rank_env, slots_per_node=1, shell=shell)
    argv = (*agents(request, ()), *wrapped_inside(request))
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=1, agent=agent, shell=shell)


def _accelerate_agent(request: LaunchRequest, machine: Token) -> tuple[Token, ...]:
    topology = request.topology
    python = python_of(request.command)
    program = (python, "-m", "accelerate.commands.launch") if python else ("accelerate", "launch")
    alone = topology.world_size == 1
    own_way = any(word.startswith(_OWN_WAY) for word in request.args)
    return (
        *texts(*program, *(() if alone or own_way else ("--multi_gpu",))),
        *texts("--num_machines", topology.nodes, "--num_processes", topology.world_size),
        *texts("--machine_rank"),
        machine,
        *texts("--main_process_ip"),
        JobVar(name="MASTER_ADDR"),
        *texts("--main_process_port"),
        JobVar(name="MASTER_PORT"),
        # accelerate would set the threads of the ranks to 1.
        *texts("--num_cpu_threads_per_process"),
        *_threads(request),
        *texts(*request.args, "--no_python"),
    )


def _threads(request: LaunchRequest) -> tuple[Token, ...]:
    """A site may unset the variable."""
    if "OMP_NUM_THREADS" in request.exported:
        return (JobVar(name="OMP_NUM_THREADS"),)
    cores = request.topology.cpus_per_task
    return (JobVar(name="cpus_per_rank"),) if cores is None else texts(cores)


_OF_ACCELERATE = ("multi-gpu", "machine-rank", "main-process-ip", "main-process-port")
ACCELERATE = Launcher(
    command=accelerate,
    programs=("srun", "accelerate"),
    through_srun=True,
    typed={
        "num-processes": "--ntasks",
        "num-machines": "--nodes",
        **dict.fromkeys(_OF_ACCELERATE, ""),
    },
)
