"""SiteProfile: what a cluster offers, requires and forbids."""

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.units import Duration, Memory
from hpc_train.base.value import Sourced, Value
from hpc_train.base.version_ranges import Version
from hpc_train.jobs.container import Containers, OneLine
from hpc_train.jobs.job import Count, Directives, Module, Name, Nodes, OneWord
from hpc_train.jobs.study import Gates
from hpc_train.sites.facilities import (
    Account,
    Detect,
    Hosts,
    Internet,
    Lifecycle,
    PbsDialect,
    PluginOptions,
    RemoteFolder,
    SageMaker,
    SharedFolders,
    Storage,
)
from hpc_train.sites.launchers_and_preflight import Launchers, Preflight, Rendezvous, Template
from hpc_train.sites.network import EnvBlock, Network
from hpc_train.sites.partition import Arch, Jobs, Partition, Qos

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

    what: Annotated[OneLine, Meta(description="Document, repository or person.")]
    date: Annotated[Date | None, Meta(description="Its date; absent if it has none.")] = None
    confidence: Annotated[
        Confidence,
        Meta(description="high: stated by the operator; medium: by several scripts; low: by one."),
    ]
    covers: Annotated[
        tuple[ProfileKey, ...],
        Meta(description="Keys that it is the source of; default: all not covered by others."),
    ] = ()


class Limits(Value, frozen=True, kw_only=True):
    """Limits of one user, if known; the scheduler's own size of arrays also applies."""

    max_array_size: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Largest index of a job array, plus one; of PBS, its number of jobs."),
    ] = None
    max_array_running: Annotated[
        Count | None, Meta(description="Elements of one array that run at once.")
    ] = None
    max_submit_jobs: Annotated[
        Jobs | None, Meta(description="Jobs in the queue at once; each array element counts.")
    ] = None
    max_study_jobs: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Runs of one study.")
    ] = None
    max_study_gpu_hours: Annotated[
        Jobs | None, Meta(description="GPU-hours of one study, from the time limits of its runs.")
    ] = None
    max_study_nodes: Annotated[Nodes | None, Meta(description="Nodes of one run of a study.")] = (
        None
    )


class Expected(Value, frozen=True, kw_only=True):
    """Result of a smoke job, for comparison with the next one."""

    date: Annotated[Date, Meta(description="Of the job.")]
    nodes: Annotated[Nodes, Meta(description="Of the job.")]
    launcher: Annotated[OneWord, Meta(description="Of the job.")]
    backend: Annotated[OneWord, Meta(description="torch.distributed's.")]
    interface: Annotated[OneWord | None, Meta(description="Interface of its sockets.")] = None
    transport: Annotated[str | None, Meta(description="Transport that NCCL printed.")] = None
    busbw_gbs: Annotated[
        float | None, Meta(description="Bus bandwidth of a large all-reduce, GB/s.")
    ] = None


class Tests(Value, frozen=True, kw_only=True):
    """Test results of a site."""

    expect: Annotated[tuple[Expected, ...], Meta(description="Results of smoke jobs.")] = ()


class Reporting(Value, frozen=True, kw_only=True):
    """Requirements of the site for a scaling report; the price of its GPUs."""

    gates: Annotated[Gates, Meta(description="Of `report --check`; those of a study win.")] = (
        Gates()
    )
    price_per_gpu_hour: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Price of a GPU for an hour.")
    ] = None
    currency: Annotated[
        str,
        Meta(pattern=r"^([A-Z]{3})?$(?!\n)", description="Currency of the price: EUR."),
    ] = ""


class SiteProfile(Value, frozen=True, kw_only=True):
    """One site, as sysadmins write it in site_profiles/NAME.yaml."""

    schema: Annotated[Literal[1], Meta(description="Version of this format.")]
    name: Annotated[Name, Meta(description="The file's name without .yaml.")]
    extends: Annotated[
        Name | None, Meta(description="The profile or family that this one inherits from.")
    ] = None
    family: Annotated[bool, Meta(description="For profiles to extend only; no job names it.")] = (
        False
    )
    description: Annotated[str, Meta(description="System, place, hardware in one line.")]
    operator: Annotated[str | None, Meta(description="Operator of the system.")] = None
    contact: Annotated[str | None, Meta(description="Contact for this file.")] = None
    url: Annotated[str | None, Meta(description="The site's documentation.")] = None
    verified_on: Annotated[
        Date | None, Meta(description="Date of the last comparison of this file with the site.")
    ] = None
    confidence: Annotated[
        Confidence | None,
        Meta(description="Of the profile; default: that of the weakest source."),
    ] = None
    sources: Annotated[tuple[Source, ...], Meta(description="Where the facts come from.")] = ()
    locked: Annotated[
        tuple[ProfileKey, ...],
        Meta(description="Keys that no profile above this one may change; below /etc/hpctrain."),
    ] = ()
    detect: Annotated[Detect | None, Meta(description="Rules that detect the site's hosts.")] = None
    scheduler: Annotated[
        str, Meta(description="`local`, `slurm`, `hosts`, or the name of an added executor.")
    ]
    hosts: Hosts = ()
    shared: SharedFolders = False
    workdir: RemoteFolder = "~/hpctrain"
    slurm: Annotated[Version | None, Meta(description="Slurm's version: '23.11'.")] = None
    step_manager: Annotated[
        Literal["slurmd", "psid"], Meta(description="What starts the processes of a step.")
    ] = "slurmd"
    slurm_conf: Annotated[
        str | None, Meta(description="Path of slurm.conf, if the commands do not find it.")
    ] = None
    pbs: Annotated[PbsDialect | None, Meta(description="How jobs of PBS are written.")] = None
    poll: Annotated[
        Duration | None,
        Meta(description="Minimum time between two queries of the scheduler; default: 30 s."),
    ] = None
    sagemaker: Annotated[SageMaker | None, Meta(description="Jobs of SageMaker.")] = None
    arch: Annotated[Arch | None, Meta(description="Processor architecture of the nodes.")] = None
    template: Template | None = None
    account: Annotated[Account, Meta(description="Accounts.")] = Account()
    partition_choice: Annotated[
        Literal["default", "fitting", "job"],
        Meta(
            description="For jobs that name no partition: the default one; the first listed that "
            "the job fits; or an error, because the job must name one."
        ),
    ] = "default"
    partitions: Annotated[tuple[Partition, ...], Meta(description="Queues and nodes.")] = ()
    qos: Annotated[tuple[Qos, ...], Meta(description="Qualities of service.")] = ()
    limits: Annotated[Limits, Meta(description="Limits of one user and of one study.")] = Limits()
    gpu_request: Annotated[
        Literal["gpus-per-node", "gres", "gpus", "gpus-per-task", "none"],
        Meta(description="Slurm option that requests GPUs; none: the partition allocates them."),
    ] = "gpus-per-node"
    gpu_request_typed: Annotated[
        bool, Meta(description="Whether the partition's gpu_type is part of the request.")
    ] = False
    cpu_request: Annotated[
        Literal["allowed", "forbidden"], Meta(description="Whether cores may be requested.")
    ] = "allowed"
    mem_request: Annotated[
        Literal["allowed", "forbidden", "required", "zero", "per-gpu", "per-cpu"],
        Meta(
            description="How memory is requested: --mem as in the job (allowed), never, always "
            "(required), --mem=0 unless the job states it (zero), --mem-per-gpu or --mem-per-cpu."
        ),
    ] = "allowed"
    default_mem_per_cpu: Annotated[
        Memory | None,
        Meta(description="Memory per core of a job that requests none: Slurm's DefMemPerCPU."),
    ] = None
    required: Annotated[
        tuple[Literal["partition", "account", "qos", "time", "mem", "constraint"], ...],
        Meta(description="Keys that each job must have."),
    ] = ()
    directives: Directives = {}
    plugin_options: PluginOptions = {}
    forbidden: Annotated[
        dict[str, str], Meta(description="sbatch option -> why the site refuses it.")
    ] = {}
    launchers: Launchers
    rendezvous: Annotated[Rendezvous, Meta(description="Rendezvous of the ranks.")] = Rendezvous()
    network: Annotated[Network | None, Meta(description="The network between the nodes.")] = None
    containers: Annotated[Containers | None, Meta(description="How the site runs images.")] = None
    torch: Annotated[
        Version | None, Meta(description="The site's torch, as text: '2.9'; a job's wins.")
    ] = None
    modules_purge: Annotated[bool, Meta(description="`module purge` before any load.")] = False
    modules_use: Annotated[
        tuple[OneLine, ...], Meta(description="Folders for `module use`, in this order.")
    ] = ()
    modules: Annotated[
        tuple[Module, ...], Meta(description="Loaded in this order, before any setup line.")
    ] = ()
    setup: Annotated[
        tuple[str, ...], Meta(description="Shell lines run once before the ranks.")
    ] = ()
    env: Annotated[dict[str, str | int | float], Meta(description="Variables for each job.")] = {}
    env_why: Annotated[dict[str, str], Meta(description="Variable -> why the site sets it.")] = {}
    env_blocks: Annotated[
        tuple[EnvBlock, ...], Meta(description="More variables, each block for some jobs.")
    ] = ()
    storage: Annotated[dict[str, Storage], Meta(description="Name -> file system.")] = {}
    submit_from: Annotated[
        OneLine | None, Meta(description="The folder that jobs must be submitted from: $SCRATCH.")
    ] = None
    internet: Annotated[Internet | None, Meta(description="Internet access of the nodes.")] = None
    lifecycle: Annotated[Lifecycle | None, Meta(description="Actions of the site on jobs.")] = None
    preflight: Annotated[
        Preflight | None, Meta(description="Checks of the nodes before the ranks start.")
    ] = None
    tests: Annotated[Tests | None, Meta(description="Test results of the site.")] = None
    report: Annotated[Reporting, Meta(description="Gates and price for reports.")] = Reporting()


SourcedSite = Sourced[SiteProfile]
