"""SiteProfile: what a cluster offers, demands and forbids."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.model.container import Containers
from hpc_train.model.job import Count, Directives, Gpus, Module, Name, Nodes, Word
from hpc_train.model.network import EnvBlock, Network
from hpc_train.model.units import Duration, Memory
from hpc_train.model.value import Value
from hpc_train.model.versions import Version

HOST_METHOD = (
    r"^(loopback|first-host|batch-host|hostname-ip|resolver|(remote-)?address:[1-9]"
    r"|interface:[A-Za-z0-9][A-Za-z0-9_.-]*)$"
)
Confidence = Literal["high", "medium", "low"]


class Partition(Value, frozen=True, kw_only=True):
    """A queue and the nodes behind it; what is absent is unknown."""

    name: Word
    default: bool = False
    max_nodes: Nodes | None = None
    max_time: Duration | None = None
    cpus_per_node: Annotated[
        Count | None, Meta(description="Cores that a job may use on one node.")
    ] = None
    gpus_per_node: Gpus | None = None
    gpu_type: Word | None = None
    mem_per_node: Memory | None = None
    cpu_bind: Annotated[
        Word | None, Meta(description="srun --cpu-bind=… of a rank; masks only on whole nodes.")
    ] = None


class Launchers(Value, frozen=True, kw_only=True):
    """Which launchers the site has, which it prefers and which it forbids, and why."""

    default: Word
    allowed: tuple[Word, ...]
    forbidden: Annotated[dict[str, str], Meta(description="launcher -> the site's reason")] = {}
    srun_args: tuple[str, ...] = ()
    mpi: Annotated[
        Word | None, Meta(description="srun --mpi=…: pmix, pmi2, cray_shasta, none.")
    ] = None
    cpu_bind: Annotated[
        Word | None, Meta(description="srun --cpu-bind=… of a rank, where the partition has none.")
    ] = None
    gpu_bind: Annotated[
        Word | None, Meta(description="srun --gpu-bind=… of a rank that has one GPU.")
    ] = None
    numa_binding: Annotated[
        Literal["node", "socket", "exclusive", "core-complex"] | None,
        Meta(description="torchrun --numa-binding=…, from torch 2.9 on."),
    ] = None
    openmpi: Annotated[
        Version | None, Meta(description="Open MPI's version: '4.1', '5'; default: 4.")
    ] = None
    bind_to: Annotated[
        Literal["none", "core", "numa", "socket", "package"],
        Meta(description="mpirun --bind-to …; core gives a rank cpus_per_task cores."),
    ] = "none"
    mpirun_args: Annotated[tuple[str, ...], Meta(description="More options of mpirun.")] = ()


class Rendezvous(Value, frozen=True, kw_only=True):
    """Where the ranks meet: how rank 0's host is named and which ports are tried.

    The ports should lie outside Linux's ephemeral range, 32768-60999 by default.
    """

    host: Annotated[
        str,
        Meta(
            description="How rank 0's address is found: loopback, first-host, batch-host, "
            "hostname-ip, resolver, address:N, remote-address:N or interface:NAME.",
            extra_json_schema={"pattern": HOST_METHOD},
        ),
    ] = "first-host"
    suffix: Annotated[str, Meta(description="Appended to the host name, e.g. 'i'.")] = ""
    port: Annotated[int, Meta(ge=1024, le=65535, description="First port tried.")] = 61000
    ports: Annotated[int, Meta(ge=1, le=60000, description="How many ports may be tried.")] = 4000


class Limits(Value, frozen=True, kw_only=True):
    """What the site allows one user, where it is known; Slurm's own MaxArraySize counts, too."""

    max_array_size: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Largest number of a job array's element, plus one."),
    ] = None
    max_array_running: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Elements of one array that run at once."),
    ] = None
    max_submit_jobs: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Jobs in the queue at once, each array element one."),
    ] = None


class Preflight(Value, frozen=True, kw_only=True):
    """What each node is asked, at once, before the ranks start; what is absent is not asked."""

    gpus: Annotated[bool, Meta(description="The node sees as many GPUs as were asked for.")] = True
    program: Annotated[
        bool, Meta(description="The job's program, or its image, is on the node.")
    ] = True
    names: Annotated[
        bool, Meta(description="The node resolves rank 0's host, and that one the node.")
    ] = True
    interfaces: Annotated[
        tuple[Word, ...], Meta(description="Network interfaces that exist and are up.")
    ] = ()
    hcas: Annotated[
        tuple[Word, ...], Meta(description="InfiniBand adapters with an active port: mlx5_0.")
    ] = ()
    space: Annotated[
        dict[Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*$(?!\n)")], Memory],
        Meta(description="Folder -> free space that it must have: /dev/shm: 1G."),
    ] = {}
    memlock: Annotated[
        bool, Meta(description="`ulimit -l` is unlimited, as InfiniBand needs it.")
    ] = False
    clock: Annotated[
        Duration | None, Meta(description="How far a node's clock may be off, e.g. 2s.")
    ] = None
    timeout: Annotated[
        Duration | None, Meta(description="How long a node may take to answer; default: 30 s.")
    ] = None


class Source(Value, frozen=True, kw_only=True):
    """Where facts of the profile come from."""

    what: str
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$(?!\n)")]
    confidence: Confidence


Template = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\.j2$(?!\n)",
        description="File name of the template of the job script, e.g. mysite.sbatch.j2.",
    ),
]


class SiteProfile(Value, frozen=True, kw_only=True):
    """One site, as sysadmins write it in site_profiles/NAME.yaml."""

    schema: Annotated[Literal[1], Meta(description="Version of this format.")]
    name: Name
    description: str
    scheduler: Literal["local", "slurm"]
    template: Template | None = None
    contact: str | None = None
    url: str | None = None
    sources: tuple[Source, ...] = ()
    launchers: Launchers
    containers: Annotated[Containers | None, Meta(description="How the site runs images.")] = None
    torch: Annotated[
        Version | None, Meta(description="The site's torch, as text: '2.9'; a job's wins.")
    ] = None
    partitions: tuple[Partition, ...] = ()
    account_required: bool = False
    gpu_request: Annotated[
        Literal["gpus-per-node", "gres", "none"],
        Meta(description="Slurm option that asks for GPUs; none: the partition gives them."),
    ] = "gpus-per-node"
    mem_request: Annotated[
        Literal["allowed", "forbidden"], Meta(description="Whether --mem may be given.")
    ] = "allowed"
    rendezvous: Rendezvous = Rendezvous()
    limits: Limits = Limits()
    preflight: Preflight | None = None
    network: Network | None = None
    poll: Annotated[
        Duration | None,
        Meta(description="Least time between two questions to the scheduler; default: 30 s."),
    ] = None
    slurm_conf: Annotated[
        str | None, Meta(description="Path of slurm.conf, where the commands do not find it.")
    ] = None
    directives: Directives = {}
    env: dict[str, str | int | float] = {}
    env_why: Annotated[dict[str, str], Meta(description="Variable -> why the site sets it.")] = {}
    modules: Annotated[
        tuple[Module, ...], Meta(description="Loaded in this order, before any setup line.")
    ] = ()
    env_blocks: Annotated[
        tuple[EnvBlock, ...], Meta(description="More variables, each block for some jobs.")
    ] = ()
    setup: tuple[str, ...] = ()
