"""What a job on a list of hosts has."""

from hpc_train.model.batch_system import BatchSystem
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
)
