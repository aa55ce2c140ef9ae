"""SiteProfile: what a cluster offers, requires and forbids."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.values import Duration, Memory, Sourced, Value, Version, doc
from hpc_train.jobs.job import Containers, Count, Directives, Gpus, Module, Name, OneLine, OneWord
from hpc_train.sites.partition import (
    Arch,
    EnvBlock,
    Jobs,
    Launchers,
    Network,
    Partition,
    Preflight,
    Qos,
    Rendezvous,
    Template,
)

_ANY = "project"
# Sample texts for the elements of a simple pattern: project_[0-9]+, (def|rrg)-.+
_SIGNS = (
    (r"\(([^|)]*)[^)]*\)", r"\1"),
    (r"(\[0-9\]|\\d)[+*]?", "1"),
    (r"\.[+*]|\[a-z\][+*]?", "x"),
)
PluginOption = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$(?!\n)",
        description="A long option without its dashes: image.",
    ),
]
PluginOptions = Annotated[
    dict[PluginOption, Literal["value", "optional", "none"]],
    doc(
        "Option of sbatch and srun that a plug-in of the site (SPANK) adds -> whether it "
        "takes a value; optional: only after =."
    ),
]


class Account(Value, frozen=True, kw_only=True):
    """Accounting rules of the site."""

    required: Annotated[bool, doc("Whether a job must name one.")] = False
    pattern: Annotated[str | None, doc("Regular expression of accounts.")] = None
    example: Annotated[str | None, doc("Example of an account, for messages.")] = None
    command: Annotated[OneLine | None, doc("Command that prints the user's accounts.")] = None


S3Uri = Annotated[
    str,
    Meta(
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\x00-\x20\x7f]+)?$(?!\n)",
        description="s3://BUCKET or s3://BUCKET/FOLDER.",
    ),
]
Region = Annotated[str, Meta(pattern=r"^[a-z]{2}(-[a-z]{2,12}){1,3}-\d{1,2}$(?!\n)")]
Channel = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$(?!\n)", description="Its name: letters, digits, ._-"),
]


class SageMaker(Value, frozen=True, kw_only=True):
    """What the training jobs of an account have in common; the instance type is the partition."""

    region: Annotated[
        Region | None, doc("Region of the jobs: eu-west-1; default: that of the shell.")
    ] = None
    role: Annotated[
        str,
        Meta(
            pattern=r"^arn:aws[a-z-]{0,20}:iam::\d{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$(?!\n)",
            description="Role of the jobs: arn:aws:iam::123456789012:role/NAME.",
        ),
    ]
    bucket: Annotated[S3Uri, doc("Where code and results are: s3://BUCKET/FOLDER.")]
    image: Annotated[
        OneLine | None, doc("Image of jobs without `container`, as in a registry.")
    ] = None
    inputs: Annotated[
        dict[Channel, S3Uri], doc("Channel -> data: {train: s3://bucket/imagenet}.")
    ] = {}
    volume_gb: Annotated[
        int, Meta(ge=1, le=16384, description="Disk of an instance, GB, where it has none.")
    ] = 30
    spot: Annotated[bool, doc("Whether jobs use spare capacity, which may be taken away.")] = False
    max_wait: Annotated[
        Duration | None, doc("With spot: longest time from the submission to the end of a job.")
    ] = None


class Storage(Value, frozen=True, kw_only=True):
    """One file system, as jobs see it."""

    path: Annotated[OneLine | None, doc("Path, with variables: $SCRATCH.")] = None
    purge: Annotated[
        Duration | None, doc("Files that were not used for this time are removed.")
    ] = None
    node_local: Annotated[bool, doc("A local disk of the node, empty at the start of a job.")] = (
        False
    )
    note: Annotated[str | None, doc("Further information.")] = None


class Internet(Value, frozen=True, kw_only=True):
    """Whether compute nodes have internet access."""

    access: Annotated[
        Literal["yes", "no", "proxy", "limited"], doc("Internet access from compute nodes.")
    ]
    env: Annotated[
        dict[str, str | int | float],
        doc("Variables set in each job: proxies, or offline options of libraries."),
    ] = {}
    note: Annotated[str | None, doc("Where to download instead.")] = None


class Detect(Value, frozen=True, kw_only=True):
    """Rules that detect the site's hosts; one match suffices."""

    env: Annotated[dict[str, str], doc("Variable -> its value, with * for any letters.")] = {}
    clusters: Annotated[tuple[OneWord, ...], doc("Slurm's ClusterName.")] = ()
    hosts: Annotated[tuple[OneWord, ...], doc("Whole host names, with * for any letters.")] = ()


class Lifecycle(Value, frozen=True, kw_only=True):
    """Actions of the site on jobs."""

    requeue: Annotated[
        bool | None, doc("Whether Slurm requeues a job after the loss of a node.")
    ] = None
    signal_lead: Annotated[
        Duration | None, doc("Time before the end at which the site recommends a signal.")
    ] = None
    note: Annotated[str | None, doc("Further information.")] = None


class PbsDialect(Value, frozen=True, kw_only=True):
    """What differs between sites with PBS: how a job requests nodes and names its project."""

    project: Annotated[Literal["-A", "-P"], doc("Option of the project.")] = "-A"
    shape: Annotated[
        Literal["select", "flat"],
        doc("Nodes as chunks (-l select=2:ncpus=8), or totals (-l ncpus=16)."),
    ] = "select"
    chunk: Annotated[
        dict[str, str | int], doc("More resources of each chunk: {system: polaris}.")
    ] = {}
    place: Annotated[
        Literal["scatter", "vscatter", "pack", "free"] | None,
        doc("-l place=...; default: scatter, without which PBS packs the chunks."),
    ] = None
    live_output: Annotated[
        bool, doc("Output is written to its file while the job runs (-k doe).")
    ] = True
    starter: Annotated[
        Literal["tmrsh", "pals", "openmpi"],
        doc(
            "What starts a process on each node, such as torchrun: PBS's pbs_tmrsh, "
            "the mpiexec of Cray PALS, or the mpirun of Open MPI."
        ),
    ] = "tmrsh"


def sample_account(account: Account) -> str:
    """Return the site's example of an account, else a text that matches its pattern."""
    if account.example:
        return account.example
    pattern = text = account.pattern or ""
    for sign, word in _SIGNS:
        text = re.sub(sign, word, text)
    return text if text and re.fullmatch(pattern, text) else _ANY


# ssh would take a name that begins with `-` for an option.
HOST_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,252}$(?!\n)"
HostName = Annotated[
    str,
    Meta(
        pattern=HOST_NAME,
        description="Its name for ssh, such as a Host of ~/.ssh/config: letters, digits, ._@-",
    ),
]
Address = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9:][A-Za-z0-9_.:-]{0,252}$(?!\n)",
        description="Address at which the ranks of the other hosts reach it; default: its name.",
    ),
]


class Host(Value, frozen=True, kw_only=True):
    """A machine: its name for ssh, its address for ranks, and the number of its GPUs."""

    name: HostName
    address: Address | None = None
    gpus: Annotated[Gpus | None, doc("Its GPUs; default: the partition's gpus_per_node.")] = None

    @property
    def reached(self) -> str:
        """Return the address for ranks."""
        return self.address or self.name


Hosts = Annotated[tuple[Host, ...], doc("The machines of the scheduler `hosts`.")]
SharedFolders = Annotated[
    bool, doc("All hosts see the folders of runs and jobs, at the same paths.")
]
RemoteFolder = Annotated[
    str,
    Meta(
        pattern=r"^(~|~?/[^\x00-\x1f\x7f]+)$(?!\n)",
        description="Folder on each host for the files of runs, unless `shared`: ~/hpctrain.",
    ),
]


class HostList(Value, frozen=True, kw_only=True):
    """The machines of a plan, in the order of the profile.

    With `shared`, all of them see the run folder and the working folder of the submission at the
    same paths. Otherwise hpctrain copies files to `workdir` on each, which may begin with `~`.
    """

    hosts: tuple[Host, ...]
    shared: bool
    workdir: str


SCHEMA = 1
Confidence = Literal["high", "medium", "low"]
Date = Annotated[
    str, Meta(pattern=r"^\d{4}-\d{2}(-\d{2})?$(?!\n)", description="2026-08-20 or 2026-08.")
]
ProfileKey = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_*-]+(\.[^.\s]+)*$(?!\n)",
        description="A key of this file, separated by dots; an item of a list by its name.",
    ),
]


class Source(Value, frozen=True, kw_only=True):
    """Where facts of the profile come from."""

    what: Annotated[OneLine, doc("Document, repository or person.")]
    date: Annotated[Date | None, doc("Its date; absent if it has none.")] = None
    confidence: Annotated[
        Confidence, doc("high: stated by the operator; medium: by several scripts; low: by one.")
    ]
    covers: Annotated[
        tuple[ProfileKey, ...],
        doc("Keys that it is the source of; default: all not covered by others."),
    ] = ()


class Limits(Value, frozen=True, kw_only=True):
    """Limits of one user, if known; the scheduler's own size of arrays also applies."""

    max_array_size: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        doc("Largest index of a job array, plus one; of PBS, its number of jobs."),
    ] = None
    max_array_running: Annotated[Count | None, doc("Elements of one array that run at once.")] = (
        None
    )
    max_submit_jobs: Annotated[
        Jobs | None, doc("Jobs in the queue at once; each array element counts.")
    ] = None


class SiteProfile(Value, frozen=True, kw_only=True):
    """One site, as sysadmins write it in site_profiles/NAME.yaml."""

    schema: Annotated[Literal[1], doc("Version of this format.")]
    name: Annotated[Name, doc("The file's name without .yaml.")]
    extends: Annotated[Name | None, doc("The profile or family that this one inherits from.")] = (
        None
    )
    family: Annotated[bool, doc("For profiles to extend only; no job names it.")] = False
    description: Annotated[str, doc("System, place, hardware in one line.")]
    operator: Annotated[str | None, doc("Operator of the system.")] = None
    contact: Annotated[str | None, doc("Contact for this file.")] = None
    url: Annotated[str | None, doc("The site's documentation.")] = None
    verified_on: Annotated[
        Date | None, doc("Date of the last comparison of this file with the site.")
    ] = None
    confidence: Annotated[
        Confidence | None, doc("Of the profile; default: that of the weakest source.")
    ] = None
    sources: Annotated[tuple[Source, ...], doc("Where the facts come from.")] = ()
    detect: Annotated[Detect | None, doc("Rules that detect the site's hosts.")] = None
    scheduler: Annotated[str, doc("`local`, `slurm`, `hosts`, or the name of an added executor.")]
    hosts: Hosts = ()
    shared: SharedFolders = False
    workdir: RemoteFolder = "~/hpctrain"
    slurm: Annotated[Version | None, doc("Slurm's version: '23.11'.")] = None
    step_manager: Annotated[
        Literal["slurmd", "psid"], doc("What starts the processes of a step.")
    ] = "slurmd"
    slurm_conf: Annotated[
        str | None, doc("Path of slurm.conf, if the commands do not find it.")
    ] = None
    pbs: Annotated[PbsDialect | None, doc("How jobs of PBS are written.")] = None
    poll: Annotated[
        Duration | None, doc("Minimum time between two queries of the scheduler; default: 30 s.")
    ] = None
    sagemaker: Annotated[SageMaker | None, doc("Jobs of SageMaker.")] = None
    arch: Annotated[Arch | None, doc("Processor architecture of the nodes.")] = None
    template: Template | None = None
    account: Annotated[Account, doc("Accounts.")] = Account()
    partition_choice: Annotated[
        Literal["default", "fitting", "job"],
        doc(
            "For jobs that name no partition: the default one; the first listed that "
            "the job fits; or an error, because the job must name one."
        ),
    ] = "default"
    partitions: Annotated[tuple[Partition, ...], doc("Queues and nodes.")] = ()
    qos: Annotated[tuple[Qos, ...], doc("Qualities of service.")] = ()
    limits: Annotated[Limits, doc("Limits of one user.")] = Limits()
    gpu_request: Annotated[
        Literal["gpus-per-node", "gres", "gpus", "gpus-per-task", "none"],
        doc("Slurm option that requests GPUs; none: the partition allocates them."),
    ] = "gpus-per-node"
    gpu_request_typed: Annotated[
        bool, doc("Whether the partition's gpu_type is part of the request.")
    ] = False
    cpu_request: Annotated[
        Literal["allowed", "forbidden"], doc("Whether cores may be requested.")
    ] = "allowed"
    mem_request: Annotated[
        Literal["allowed", "forbidden", "required", "zero", "per-gpu", "per-cpu"],
        doc(
            "How memory is requested: --mem as in the job (allowed), never, always "
            "(required), --mem=0 unless the job states it (zero), --mem-per-gpu or --mem-per-cpu."
        ),
    ] = "allowed"
    default_mem_per_cpu: Annotated[
        Memory | None, doc("Memory per core of a job that requests none: Slurm's DefMemPerCPU.")
    ] = None
    required: Annotated[
        tuple[Literal["partition", "account", "qos", "time", "mem", "constraint"], ...],
        doc("Keys that each job must have."),
    ] = ()
    directives: Directives = {}
    plugin_options: PluginOptions = {}
    forbidden: Annotated[dict[str, str], doc("sbatch option -> why the site refuses it.")] = {}
    launchers: Launchers
    rendezvous: Annotated[Rendezvous, doc("Rendezvous of the ranks.")] = Rendezvous()
    network: Annotated[Network | None, doc("The network between the nodes.")] = None
    containers: Annotated[Containers | None, doc("How the site runs images.")] = None
    torch: Annotated[
        Version | None, doc("The site's torch, as text: '2.9'; that of a job takes precedence.")
    ] = None
    modules_purge: Annotated[bool, doc("`module purge` before any load.")] = False
    modules_use: Annotated[
        tuple[OneLine, ...], doc("Folders for `module use`, in this order.")
    ] = ()
    modules: Annotated[tuple[Module, ...], doc("Loaded in this order, before any setup line.")] = ()
    setup: Annotated[tuple[str, ...], doc("Shell lines run once before the ranks.")] = ()
    env: Annotated[dict[str, str | int | float], doc("Variables for each job.")] = {}
    env_why: Annotated[dict[str, str], doc("Variable -> why the site sets it.")] = {}
    env_blocks: Annotated[
        tuple[EnvBlock, ...], doc("More variables, each block for some jobs.")
    ] = ()
    storage: Annotated[dict[str, Storage], doc("Name -> file system.")] = {}
    internet: Annotated[Internet | None, doc("Internet access of the nodes.")] = None
    lifecycle: Annotated[Lifecycle | None, doc("Actions of the site on jobs.")] = None
    preflight: Annotated[Preflight | None, doc("Checks of the nodes before the ranks start.")] = (
        None
    )


SourcedSite = Sourced[SiteProfile]
