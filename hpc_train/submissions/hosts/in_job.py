"""What a job on a list of hosts has."""

from hpc_train.model.batch_system import CANCELLED, ONE_BY_ONE, RETRIED, BatchSystem
from hpc_train.model.plan import LaunchRequest, Token

_NO_SLURM = "there is no Slurm on a list of hosts; torchrun starts the ranks of each host"


def on_this_node(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return no words that start a process on each node, because the script runs on each."""
    return ()


HOSTS = BatchSystem(
    title="hpctrain",
    template="hosts.sh.j2",
    starter="hpc_train.submissions.hosts.in_job:on_this_node",
    node_rank=("HPCTRAIN_NODE_RANK",),
    node_name="HPCTRAIN_NODE_NAME",
    node_list="HPCTRAIN_HOSTS",
    nodes="tr , '\\n' <<<\"$HPCTRAIN_HOSTS\"",
    host_list=True,
    refused={"srun": _NO_SLURM, "ibrun": _NO_SLURM},
    instead={
        "lifecycle": RETRIED,
        "signal_before_end": "TERM at the time limit, KILL 30 s later",
        "preemption": "nothing preempts a run: its hosts are locked until it ends",
        "arrays": "each run waits for free hosts, in the order of the study",
        "dependency": ONE_BY_ONE,
        "hold": CANCELLED,
        "placement: nested": "each run takes free hosts",
        "elastic": "a host that fails ends the run; hpctrain retry RUN starts it again",
    },
)
