"""deepspeed: the ranks as `deepspeed.init_distributed` and scripts made for its starter want them.

DeepSpeed's own starter is not used: it wants a file of hosts and a way onto them, its agents
write 0, 1, … over the CUDA_VISIBLE_DEVICES that Slurm has given, and they hide which rank failed.
`init_distributed` reads RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, so Slurm starts
the ranks (torchrun, where there is no Slurm), and each gets `--local_rank` as the starter adds it.
"""

from __future__ import annotations

import msgspec

from hpc_train.model.plan import JobVar, Launch, LaunchRequest, Text, Token
from hpc_train.plans.launchers import torchrun
from hpc_train.plans.launchers.srun import every_rank

_WITHOUT = "--no_local_rank"
_WITH_LOCAL_RANK = 'exec "$@" "--local_rank=$LOCAL_RANK"'


def command(request: LaunchRequest) -> Launch:
    """Return srun with one task per rank, or torchrun on this machine."""
    words = request.command
    if _WITHOUT not in request.args:
        words = ("sh", "-c", _WITH_LOCAL_RANK, "rank", *words)
    args = tuple(word for word in request.args if word != _WITHOUT)
    told = msgspec.structs.replace(request, command=words, args=args)
    if request.scheduler != "slurm":
        return _here(request, told)
    launch = every_rank(told, *args)
    names: tuple[tuple[str, Token], ...] = (
        ("LOCAL_SIZE", Text(text=str(request.topology.tasks_per_node))),
        ("CROSS_RANK", JobVar(name="SLURM_NODEID")),
        ("CROSS_SIZE", Text(text=str(request.topology.nodes))),
    )
    return msgspec.structs.replace(launch, rank_env=(*launch.rank_env, *names))


def _here(request: LaunchRequest, told: LaunchRequest) -> Launch:
    """Torchrun's agent takes the program's Python, which `sh` would hide."""
    agent = torchrun.agent_here(told, request.command)
    names: tuple[tuple[str, Token], ...] = (
        ("LOCAL_SIZE", Text(text=str(request.topology.tasks_per_node))),
        ("CROSS_RANK", Text(text="0")),
        ("CROSS_SIZE", Text(text="1")),
    )
    return Launch(argv=agent, rank_env=names, slots_per_node=1)
