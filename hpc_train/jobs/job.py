"""JobSpec: a job, independent of the scheduler."""

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.values import Duration, Memory, Sourced, Value, Version
from hpc_train.base.variable_names_and_secrets import Variable
from hpc_train.jobs.strategies import (
    CheckpointingName,
    CompileName,
    ModelName,
    OptimizerName,
    PrecisionName,
    ScheduleName,
    StrategyName,
)

ContainerRuntime = Literal["apptainer", "singularity", "pyxis", "podman-hpc", "shifter", "edf"]
OneLine = Annotated[
    str, Meta(min_length=1, pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)", description="One line of text.")
]
Mounts = Annotated[
    tuple[OneLine, ...],
    Meta(description="Host folders that the ranks see: PATH, SOURCE:TARGET or SOURCE:TARGET:ro."),
]


class Container(Value, frozen=True, kw_only=True):
    """The image of a job, independent of the runtime."""

    image: Annotated[
        OneLine, Meta(description="File or name of the image, as the site's runtime expects it.")
    ]
    mounts: Mounts = ()
    workdir: Annotated[
        OneLine | None, Meta(description="Where the command runs inside; default: as outside.")
    ] = None
    env: Annotated[
        tuple[Variable, ...],
        Meta(description="Variables of your shell that the image must not override."),
    ] = ()
    writable: Annotated[bool, Meta(description="Let ranks write into their image.")] = False


class Containers(Value, frozen=True, kw_only=True):
    """How the site runs images."""

    runtime: Annotated[ContainerRuntime, Meta(description="The container runtime.")]
    program: Annotated[
        OneLine | None, Meta(description="Its program, if it has another name than the runtime.")
    ] = None
    setup: Annotated[
        tuple[str, ...], Meta(description="Shell lines for jobs with a container: module load …")
    ] = ()
    args: Annotated[tuple[str, ...], Meta(description="More options of the runtime.")] = ()
    verb: Annotated[
        Literal["exec", "run"] | None,
        Meta(
            description="Of apptainer and singularity: exec, the default, or run, by the image's "
            "own start-up script."
        ),
    ] = None
    host_drivers: Annotated[
        bool, Meta(description="Whether apptainer and singularity get --nv or --rocm.")
    ] = True
    mounts: Mounts = ()
    mpi: Annotated[
        OneLine | None,
        Meta(description="srun --mpi=… for MPI ranks in containers; default: as outside."),
    ] = None


_Count = Annotated[int, Meta(ge=1, le=4096)]
_Steps = Annotated[int, Meta(ge=0, le=10**9)]
_Workers = Annotated[int, Meta(ge=0, le=1024)]
_Norm = Annotated[float, Meta(gt=0, le=1e12)]
_Mesh = Annotated[
    str,
    Meta(
        pattern=r"^[1-9][0-9]{0,4},[1-9][0-9]{0,4}$(?!\n)",
        description="Ranks in the two dimensions of hsdp and of compositions, such as 2,4.",
    ),
]


class TrainerOptions(Value, frozen=True, kw_only=True):
    """Options of hpc_train.trainer.train; they are added to the command."""

    strategy: Annotated[
        StrategyName | None, Meta(description="How the ranks share the work; default: ddp.")
    ] = None
    model: Annotated[ModelName | None, Meta(description="The network; default: cnn.")] = None
    precision: Annotated[
        PrecisionName | None,
        Meta(description="Type of numbers in operations; default: fp32."),
    ] = None
    optimizer: Annotated[
        OptimizerName | None, Meta(description="Default: sgd, with momentum 0.9.")
    ] = None
    mesh: Annotated[_Mesh | None, Meta(description="Default: 2 in the last dimension.")] = None
    schedule: Annotated[
        ScheduleName | None, Meta(description="Schedule of a pipeline; default: 1F1B.")
    ] = None
    accumulate: Annotated[
        _Count | None,
        Meta(description="Micro-batches of a step; default: 1, or the stages of a pipeline."),
    ] = None
    data: Annotated[
        str | None,
        Meta(description="digits, synthetic, synthetic-imagenet or a path. Default: by the model."),
    ] = None
    workers: Annotated[
        _Workers | None, Meta(description="Processes that read data for each rank; default: 0.")
    ] = None
    clip_norm: Annotated[
        _Norm | None, Meta(description="Largest norm of the gradients, above 0; default: no limit.")
    ] = None
    warmup_steps: Annotated[
        _Steps | None,
        Meta(description="Steps in which the learning rate grows linearly; default: 0."),
    ] = None
    profile_steps: Annotated[
        _Steps | None,
        Meta(description="Steps, from the third on, that are profiled; default: 0."),
    ] = None
    checkpointing: Annotated[
        CheckpointingName | None,
        Meta(description="Activations computed again in the backward pass; default: none."),
    ] = None
    compile: Annotated[
        CompileName | None, Meta(description="block: compile each block; default: none.")
    ] = None


# `(?!\n)` in patterns, because Python's `$` also matches before a line break at the end.
Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$(?!\n)",
        description="1 to 100 letters, digits, '.', '_' and '-'; it names the results folder.",
    ),
]
OneWord = Annotated[str, Meta(pattern=r"^[!-~]+$(?!\n)", description="One word, no blanks.")]
# `names` is the group of the registry with the allowed words; error messages list them.
LauncherName = Annotated[OneWord, Meta(extra={"names": "launchers"})]
Module = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_][!-~]*$(?!\n)",
        description="An argument of `module load`: cuda/12.4.",
    ),
]
Nodes = Annotated[int, Meta(ge=1, le=100_000)]
Count = Annotated[int, Meta(ge=1, le=4096)]
ExitCode = Annotated[int, Meta(ge=1, le=255)]
Gpus = Annotated[int, Meta(ge=0, le=64)]
Directives = Annotated[
    dict[str, str | int | bool],
    Meta(
        description=(
            "More options of sbatch by their long names: reservation: maint; true is an option "
            "without value, false removes an option of the site."
        )
    ),
]
Backend = Literal["auto", "nccl", "gloo", "mpi"]


class Resources(Value, frozen=True, kw_only=True):
    """Resources of one job; names and meaning are Slurm's."""

    nodes: Annotated[Nodes, Meta(description="Number of nodes.")] = 1
    tasks_per_node: Annotated[
        Count | None, Meta(description="Ranks on each node; default: one per GPU, else one.")
    ] = None
    gpus_per_node: Annotated[
        Gpus | None, Meta(description="GPUs on each node; a100:4 also states their type.")
    ] = None
    gpu_type: Annotated[
        OneWord | None,
        Meta(
            description="Type of the GPUs in Slurm; default: the partition's, where it is needed."
        ),
    ] = None
    cpus_per_task: Annotated[Count | None, Meta(description="CPU cores of each rank.")] = None
    mem: Annotated[Memory | None, Meta(description="Memory per node: 480G, 4000M.")] = None
    time: Annotated[Duration | None, Meta(description="Time limit: 1h30m, 01:30:00.")] = None
    exclusive: Annotated[bool | None, Meta(description="Share the nodes with no other job.")] = None


class Elastic(Value, frozen=True, kw_only=True):
    """How a job continues after ranks or nodes fail, under torchrun."""

    min_nodes: Annotated[
        Nodes | None,
        Meta(description="Minimum number of nodes to continue with; default: all of them."),
    ] = None
    max_nodes: Annotated[
        Nodes | None,
        Meta(description="Nodes in use; the other nodes of the job are spares; default: all."),
    ] = None
    max_restarts: Annotated[
        int, Meta(ge=0, le=1000, description="How often failed ranks are restarted.")
    ] = 0


# EX_TEMPFAIL of sysexits.h: a program that saved its state and has more to do.
RESUBMIT = 75
# A shell adds it to the number of the signal that ended a program (POSIX, 2.8.2).
_SIGNALLED = 128


class JobLifecycle(Value, frozen=True, kw_only=True):
    """When a job queues itself again, to continue from its last checkpoint."""

    requeue_on: Annotated[
        tuple[ExitCode, ...],
        Meta(min_length=1, description="Exit codes of ranks after which it is queued again."),
    ] = (RESUBMIT,)
    max_restarts: Annotated[
        int, Meta(ge=1, le=1000, description="How often the job is started again.")
    ] = 10
    max_stalled: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="Starts in a row without a later checkpoint before the job ends.",
        ),
    ] = 2
    max_run_time: Annotated[
        Duration | None,
        Meta(description="Time that all starts may run together; then it is not started again."),
    ] = None
    stop_by: Annotated[
        Literal["signal", "file"],
        Meta(description="How ranks are asked to stop: USR1, or the file stop of the run folder."),
    ] = "signal"

    @property
    def asks_again(self) -> tuple[int, ...]:
        """The codes of `requeue_on` that no failure has: not 1, nor that of a signal."""
        return tuple(code for code in self.requeue_on if 1 < code < _SIGNALLED)


class JobSpec(Value, frozen=True, kw_only=True):
    """One job: a command, its resources and its launcher."""

    name: Name
    command: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="Program and arguments, one list item each; no shell."),
    ]
    launcher: Annotated[
        LauncherName | None,
        Meta(
            description="One of the site's launchers.allowed, such as torchrun; "
            "default: the site's launchers.default."
        ),
    ] = None
    launcher_args: Annotated[
        tuple[str, ...], Meta(description="More options of the launcher, one list item each.")
    ] = ()
    elastic: Annotated[
        Elastic | None, Meta(description="Continue after a failure; needs the launcher torchrun.")
    ] = None
    container: Annotated[Container | None, Meta(description="Container image of the ranks.")] = None
    torch: Annotated[
        Version | None, Meta(description="torch's version, as text: '2.9'; default: the site's.")
    ] = None
    backend: Annotated[
        Backend, Meta(description="Backend of torch.distributed; auto: by GPUs and fabric.")
    ] = "auto"
    mpi: Annotated[
        bool, Meta(description="The program itself uses MPI: srun gets the site's --mpi.")
    ] = False
    trainer: Annotated[
        TrainerOptions | None, Meta(description="Options of the reference trainer.")
    ] = None
    resources: Resources = Resources()
    account: Annotated[OneWord | None, Meta(description="Slurm account.")] = None
    partition: Annotated[OneWord | None, Meta(description="Slurm partition.")] = None
    qos: Annotated[OneWord | None, Meta(description="Slurm quality of service.")] = None
    constraint: Annotated[OneWord | None, Meta(description="Slurm node features.")] = None
    directives: Directives = {}
    storage: Annotated[
        tuple[OneWord, ...],
        # In run.json of earlier versions.
        Meta(max_length=0, description="empty: `directives` or `constraint` requests a disk."),
    ] = ()
    env: Annotated[
        dict[str, str | int | float],
        Meta(description="Environment of the ranks; a value may contain any character except NUL."),
    ] = {}
    modules: Annotated[
        tuple[Module, ...], Meta(description="Loaded in this order, before the setup lines.")
    ] = ()
    comment: Annotated[OneLine | None, Meta(description="Slurm's comment of the job.")] = None
    secrets: Annotated[
        dict[str, str],
        Meta(
            description="Variables with a secret: `env` takes it from the shell that submits, a "
            "path from that file, which only its owner may read. Only the name is written."
        ),
    ] = {}
    setup: Annotated[
        tuple[str, ...],
        Meta(description="Shell lines run once before the ranks, e.g. module load."),
    ] = ()
    signal_before_end: Annotated[
        Duration | None,
        Meta(description="Time before the time limit at which ranks get USR1: 2m; default: never."),
    ] = None
    lifecycle: Annotated[
        JobLifecycle | None,
        Meta(description="Queue the job again when its ranks request it; {} takes all defaults."),
    ] = None
    workdir: Annotated[
        str | None,
        Meta(description="Working folder, relative to this file; default: the current folder."),
    ] = None


SourcedJob = Sourced[JobSpec]


class SiteDefaults(Value, frozen=True, kw_only=True):
    """Keys of the jobs at one site, where they leave them out."""

    account: Annotated[OneWord | None, Meta(description="Account.")] = None
    partition: Annotated[OneWord | None, Meta(description="Partition or queue.")] = None
    qos: Annotated[OneWord | None, Meta(description="Quality of service.")] = None
    setup: Annotated[tuple[str, ...], Meta(description="Shell lines before the ranks.")] = ()


class Defaults(Value, frozen=True, kw_only=True):
    """`~/.config/hpctrain/defaults.yaml`."""

    site: Annotated[
        OneWord | None,
        Meta(description="Used without --site and $HPCTRAIN_SITE; default: detected."),
    ] = None
    sites: Annotated[
        dict[str, SiteDefaults], Meta(description="Name of a site -> what its jobs leave out.")
    ] = {}


class Topology(Value, frozen=True, kw_only=True):
    """nodes x tasks x GPUs; `cpus_per_task` cores and threads a rank; None: counted in the job."""

    nodes: int
    tasks_per_node: int
    gpus_per_node: int
    cpus_per_task: int | None

    @property
    def world_size(self) -> int:
        """Number of ranks of the whole job."""
        return self.nodes * self.tasks_per_node
