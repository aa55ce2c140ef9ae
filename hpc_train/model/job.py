"""JobSpec: what the user wants to run, in no scheduler's terms."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.model.units import Duration, Memory
from hpc_train.model.value import Value

Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="1 to 100 letters, digits, '.', '_' and '-'; it names the results folder.",
    ),
]
Word = Annotated[str, Meta(pattern=r"^[!-~]+$", description="One word, no blanks.")]
Nodes = Annotated[int, Meta(ge=1, le=100_000)]
Count = Annotated[int, Meta(ge=1, le=4096)]
Gpus = Annotated[int, Meta(ge=0, le=64)]
Backend = Literal["auto", "nccl", "gloo", "mpi"]


class Resources(Value, frozen=True, kw_only=True):
    """What one job needs; Slurm's words and Slurm's meaning."""

    nodes: Annotated[Nodes, Meta(description="Number of nodes.")] = 1
    tasks_per_node: Annotated[
        Count | None, Meta(description="Ranks on each node; default: one per GPU, else one.")
    ] = None
    gpus_per_node: Annotated[Gpus | None, Meta(description="GPUs on each node.")] = None
    cpus_per_task: Annotated[Count | None, Meta(description="CPU cores of each rank.")] = None
    mem: Annotated[Memory | None, Meta(description="Memory per node: 480G, 4000M.")] = None
    time: Annotated[Duration | None, Meta(description="Time limit: 1h30m, 01:30:00.")] = None
    exclusive: Annotated[bool | None, Meta(description="Share the nodes with no other job.")] = None


class JobSpec(Value, frozen=True, kw_only=True):
    """One job: a command, what it needs, how it is launched."""

    name: Name
    command: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="Program and arguments, one list item each; no shell."),
    ]
    launcher: Annotated[
        Word | None,
        Meta(description="torchrun, srun, mpirun, spawn or single; default: the site's choice."),
    ] = None
    backend: Annotated[
        Backend, Meta(description="torch.distributed's; auto: by GPUs and fabric.")
    ] = "auto"
    resources: Resources = Resources()
    account: Annotated[Word | None, Meta(description="Slurm account.")] = None
    partition: Annotated[Word | None, Meta(description="Slurm partition.")] = None
    qos: Annotated[Word | None, Meta(description="Slurm quality of service.")] = None
    constraint: Annotated[Word | None, Meta(description="Slurm node features.")] = None
    env: Annotated[
        dict[str, str | int | float],
        Meta(description="Environment of the ranks; a value may hold anything but NUL."),
    ] = {}
    setup: Annotated[
        tuple[str, ...],
        Meta(description="Shell lines run once before the ranks, e.g. module load."),
    ] = ()
    workdir: Annotated[
        str | None,
        Meta(
            description="Where the command runs, relative to this file; default: where you submit."
        ),
    ] = None
