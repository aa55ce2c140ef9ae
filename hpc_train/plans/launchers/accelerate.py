"""accelerate: `accelerate launch` once per node, which is torchrun's agent with other options."""

from __future__ import annotations

from hpc_train.plans.explanations import Reason
from hpc_train.plans.launchers.base import (
    SRUN,
    Launcher,
    Program,
    agents,
    node_rank,
    only_rank,
    python_of,
    texts,
    wrapped_inside,
)
from hpc_train.plans.plan import JobVar, Launch, LaunchRequest, LaunchShell, Token

# With one of these options, accelerate reads the training type elsewhere and refuses ours.
_OWN_WAY = ("--config_file", "--use_", "--multi_gpu", "--cpu", "--tpu")


def command(request: LaunchRequest) -> Launch:
    """Return `accelerate launch …` with the command's Python, under srun on a cluster.

    The machine rank must expand on its node: in the batch script it would be 0 everywhere.
    """
    around = request.container.around if request.container else ()
    agent = (*around, *_agent(request, node_rank(request)))
    # A single process is started without torch's agent, which would have set its variables.
    rank_env = only_rank() if request.topology.world_size == 1 else ()
    shell = LaunchShell(module="accelerate" if python_of(request.command) else "")
    if not request.batch.starter:
        argv = (*agent, *wrapped_inside(request))
        return Launch(argv=argv, rank_env=rank_env, slots_per_node=1, shell=shell)
    argv = (*agents(request, ()), *wrapped_inside(request))
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=1, agent=agent, shell=shell)


def _agent(request: LaunchRequest, machine: Token) -> tuple[Token, ...]:
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


ACCELERATE = Program(
    name="accelerate",
    words=("accelerate.commands.launch",),
    options={
        "--multi_gpu": Reason(why="more than one rank"),
        "--num_machines": Reason(why="one agent on each node"),
        "--num_processes": Reason(why="the ranks of all nodes"),
        "--machine_rank": Reason(why="expands on the node, not in the batch script", trap="F14"),
        "--main_process_ip": Reason(why="where rank 0 is", trap="F12"),
        "--main_process_port": Reason(why="free on rank 0's host when the job starts", trap="F11"),
        "--num_cpu_threads_per_process": Reason(
            why="accelerate would write 1 over the ranks' threads", trap="F6"
        ),
        "--no_python": Reason(
            why="each rank starts behind the wrapper that records it", trap="F24"
        ),
    },
)
_ITSELF = ("multi-gpu", "machine-rank", "main-process-ip", "main-process-port")
LAUNCHER = Launcher(
    command=command,
    programs=(SRUN, ACCELERATE),
    through_srun=True,
    typed={
        "num-processes": "--ntasks",
        "num-machines": "--nodes",
        **dict.fromkeys(_ITSELF, ""),
    },
)
