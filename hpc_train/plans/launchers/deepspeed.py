"""deepspeed: start ranks as `deepspeed.init_distributed` and scripts for its launcher expect them.

DeepSpeed's own launcher is not used: it needs a file of hosts and remote access to them, its agents
overwrite Slurm's CUDA_VISIBLE_DEVICES with 0, 1, …, and they hide which rank failed.
`init_distributed` reads RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, so Slurm starts
the ranks (torchrun, where there is no Slurm), and each gets `--local_rank`, as DeepSpeed's launcher
adds it.
"""

from __future__ import annotations

import msgspec

from hpc_train.plans.launchers import torchrun
from hpc_train.plans.launchers.base import SRUN, Launcher, node_rank, texts
from hpc_train.plans.launchers.srun import every_rank
from hpc_train.plans.plan import Definition, JobVar, Launch, LaunchRequest, LaunchShell, Text, Token

_WITHOUT = "--no_local_rank"
_WITH_LOCAL_RANK = Definition(
    name="with_local_rank",
    text='exec "$@" "--local_rank=$LOCAL_RANK"',
    comments=(
        "As DeepSpeed's own starter does; it expands in the rank.",
        f"shellcheck disable=SC2016,SC2034 # not with {_WITHOUT}",
    ),
)
_ADD_LOCAL_RANK = (*texts("sh", "-c"), JobVar(name=_WITH_LOCAL_RANK.name), *texts("rank"))


def command(request: LaunchRequest) -> Launch:
    """Return srun with one task per rank, or torchrun on this machine."""
    before = () if _WITHOUT in request.args else _ADD_LOCAL_RANK
    args = tuple(word for word in request.args if word != _WITHOUT)
    with_local_rank = msgspec.structs.replace(request, args=args)
    if request.batch.steps:
        launch = every_rank(with_local_rank, args, before)
    else:
        launch = Launch(argv=torchrun.agent_here(with_local_rank, *before), slots_per_node=1)
    return msgspec.structs.replace(
        launch,
        rank_env=(*launch.rank_env, *_names(request)),
        shell=LaunchShell(definitions=(_WITH_LOCAL_RANK,)),
    )


def _names(request: LaunchRequest) -> tuple[tuple[str, Token], ...]:
    """Return the remaining variables that DeepSpeed's launcher sets for a rank."""
    return (
        ("LOCAL_SIZE", Text(text=str(request.topology.tasks_per_node))),
        ("CROSS_RANK", node_rank(request)),
        ("CROSS_SIZE", Text(text=str(request.topology.nodes))),
    )


LAUNCHER = Launcher(
    command=command,
    programs=(SRUN, torchrun.TORCHRUN),
    through_srun=True,
    ranks_are_tasks=True,
    typed={
        "num-gpus": "--tasks-per-node",
        "num-nodes": "--nodes",
        **dict.fromkeys(("hostfile", "master-addr", "master-port"), ""),
    },
)
