"""Partition, Qos, Network, Launchers, Rendezvous, Preflight: what jobs of a site use."""

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.values import Duration, Memory, NodeBounds, Value, Version, doc
from hpc_train.jobs.job import Count, Gpus, LauncherName, Module, Nodes, OneWord

Fabric = Literal[
    "infiniband", "roce", "slingshot", "efa", "gcp-tcpx", "gcp-tcpxo", "gcp-gib", "ethernet"
]
Vendor = Literal["nvidia", "amd", "intel", "none"]
Runtime = Literal["nccl", "rccl", "gloo", "mpi", "ucx"]
Mode = Literal["set", "default", "prepend", "append"]
Interface = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$(?!\n)", description="Name of a network interface."),
]
Hca = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+){0,3}$(?!\n)",
        description="Name of a host adapter, with an optional port: mlx5_0, mlx5_0:1.",
    ),
]


class Network(Value, frozen=True, kw_only=True):
    """The network between the nodes; without a fabric nothing is set."""

    fabric: Annotated[Fabric | None, doc("Fabric that NCCL uses between nodes.")] = None
    interfaces: Annotated[
        tuple[Interface, ...], doc("Interfaces for the sockets of NCCL and gloo.")
    ] = ()
    exclude_interfaces: Annotated[
        tuple[Interface, ...], doc("Interfaces that NCCL must not use, by prefix.")
    ] = ()
    hcas: Annotated[tuple[Hca, ...], doc("Host adapters for the ranks' data.")] = ()
    gdr_level: Annotated[
        Literal["LOC", "PIX", "PXB", "PHB", "SYS"] | None,
        doc("NCCL_NET_GDR_LEVEL: LOC, PIX, PXB, PHB or SYS."),
    ] = None
    alt_read: Annotated[
        bool, doc("Slingshot: alternative rendezvous, with its --network option.")
    ] = False
    plugin: Annotated[OneWord | None, doc("NCCL_NET_PLUGIN: a suffix or a path.")] = None
    plugin_from: Annotated[
        str | None, doc("What provides NCCL's plug-in, for messages: module nccl.")
    ] = None
    script: Annotated[
        Annotated[str, Meta(pattern=r"^/[^\n]*$(?!\n)")] | None,
        doc("Absolute path of the vendor's settings script, which is sourced."),
    ] = None
    nccl: Annotated[
        Version | None, doc("Version of NCCL; on AMD the one that RCCL is based on.")
    ] = None
    gpus: Annotated[Vendor | None, doc("Vendor of the GPUs; default: by gpu_type.")] = None


class When(Value, frozen=True, kw_only=True):
    """Jobs that a block applies to: all conditions must hold; of a list, one value must match."""

    nodes: Annotated[NodeBounds | None, doc("1, '>1', '>=2,<16'.")] = None
    # Not `OneWord | …`: with a union of a list and a text with a pattern, msgspec 0.22 crashes when
    # the interpreter exits.
    partition: Annotated[str | tuple[OneWord, ...] | None, doc("The job's partition.")] = None
    launcher: Annotated[str | tuple[OneWord, ...] | None, doc("The job's launcher.")] = None
    runtime: Annotated[
        Runtime | tuple[Runtime, ...] | None, doc("Library that transfers the ranks' data.")
    ] = None
    vendor: Annotated[Vendor | tuple[Vendor, ...] | None, doc("Vendor of the job's GPUs.")] = None
    container: Annotated[bool | None, doc("Whether ranks run in a container.")] = None


class EnvBlock(Value, frozen=True, kw_only=True):
    """Variables for the jobs that `when` describes, or a note that they are already set."""

    when: When = When()
    env: Annotated[dict[str, str | int | float], doc("Variables to set.")]
    already_set_by: Annotated[
        str | None, doc("What already sets `env` on this site, so that nothing is written.")
    ] = None
    mode: Annotated[
        Mode, doc("How an existing value is treated; prepend and append put a colon between.")
    ] = "set"
    why: Annotated[str, doc("Shown by `explain`.")] = ""
    source: Annotated[str, doc("Source of the values.")] = ""


ANY = "*"
Jobs = Annotated[int, Meta(ge=1)]
Arch = Literal["x86_64", "aarch64"]
TotalGpus = Annotated[int, Meta(ge=0, le=1_000_000)]


class Select(Value, frozen=True, kw_only=True):
    """Options that select these nodes; missing keys are not written."""

    partition: Annotated[OneWord | None, doc("--partition=…")] = None
    qos: Annotated[OneWord | None, doc("--qos=…, if the job names none.")] = None
    constraint: Annotated[
        OneWord | None, doc("--constraint=…; the job's own is joined with &.")
    ] = None
    account_suffix: Annotated[OneWord | None, doc("Appended to the job's account: @a100, _g.")] = (
        None
    )


class Bound(Value, frozen=True, kw_only=True):
    """The longest time of jobs with so many nodes, instead of the partition's."""

    nodes: Annotated[NodeBounds, doc("Numbers of nodes: '<=91', '>=2,<16'.")]
    max_time: Annotated[Duration, doc("Longest time limit.")]


class Qos(Value, frozen=True, kw_only=True):
    """A quality of service and its limits; missing keys are unknown."""

    name: Annotated[OneWord, doc("Argument of --qos=…; * for any other.")]
    default: Annotated[bool, doc("Used if a job names none.")] = False
    partitions: Annotated[
        tuple[OneWord, ...], doc("Partitions that it applies to; default: all.")
    ] = ()
    max_time: Annotated[Duration | None, doc("Longest time limit.")] = None
    max_nodes: Annotated[Nodes | None, doc("Most nodes of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, doc("Most GPUs of one job.")] = None
    max_node_minutes: Annotated[Jobs | None, doc("Most nodes x minutes of one job.")] = None
    max_jobs: Annotated[Jobs | None, doc("Jobs of one user that run at once.")] = None


class Preemption(Value, frozen=True, kw_only=True):
    """How a job of this partition may be preempted."""

    grace: Annotated[Duration | None, doc("Time from the first signal to the last.")] = None
    safe: Annotated[Duration | None, doc("Run time before a job may be preempted.")] = None
    warning: Annotated[bool, doc("Whether a signal is sent before.")] = True


class Partition(Value, frozen=True, kw_only=True):
    """A queue and its nodes; missing keys are unknown."""

    name: Annotated[OneWord, doc("The value of `partition:` in a job; * for any value.")]
    description: Annotated[str | None, doc("Purpose, in a few words.")] = None
    default: Annotated[bool, doc("Used if a job names none.")] = False
    select: Annotated[Select | None, doc("How a job selects it; default: --partition=NAME.")] = None
    nodes: Annotated[Nodes | None, doc("Number of its nodes.")] = None
    min_nodes: Annotated[Nodes | None, doc("Fewest nodes of one job.")] = None
    max_nodes: Annotated[Nodes | None, doc("Most nodes of one job.")] = None
    min_gpus: Annotated[TotalGpus | None, doc("Fewest GPUs of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, doc("Most GPUs of one job.")] = None
    min_time: Annotated[Duration | None, doc("Shortest time limit.")] = None
    max_time: Annotated[Duration | None, doc("Longest time limit.")] = None
    default_time: Annotated[Duration | None, doc("Time limit of a job that requests none.")] = None
    max_node_minutes: Annotated[Jobs | None, doc("Most nodes x minutes of one job.")] = None
    max_jobs: Annotated[Jobs | None, doc("Jobs of one user that run at once.")] = None
    bounds: Annotated[
        tuple[Bound, ...],
        doc("Longest times by number of nodes; the last matching entry counts."),
    ] = ()
    shared: Annotated[bool | None, doc("Whether jobs of other users may run on the same node.")] = (
        None
    )
    exclusive: Annotated[bool, doc("Whether jobs request whole nodes by default.")] = False
    preemption: Annotated[Preemption | None, doc("Present if jobs may be preempted.")] = None
    arch: Annotated[
        Arch | None, doc("Processor architecture of the nodes; default: the site's.")
    ] = None
    cpus_per_node: Annotated[Count | None, doc("Cores that a job may use on one node.")] = None
    reserved_cpus: Annotated[Count | None, doc("Cores of a node that jobs cannot use.")] = None
    threads_per_core: Annotated[Count | None, doc("Hardware threads of a core.")] = None
    cpus_per_gpu: Annotated[Count | None, doc("Cores per GPU, in Slurm's CPUs.")] = None
    cpu_rule: Annotated[
        Literal["share", "exact", "max"],
        doc(
            "cpus_per_gpu is a default (share), the only accepted ratio (exact), or the "
            "maximum (max)."
        ),
    ] = "share"
    cpu_bind: Annotated[
        OneWord | None, doc("srun --cpu-bind=… of a rank; masks only on whole nodes.")
    ] = None
    mem_per_node: Annotated[Memory | None, doc("Most memory of a job on a node.")] = None
    mem_per_gpu: Annotated[Memory | None, doc("Memory per GPU.")] = None
    gpus_per_node: Annotated[Gpus | None, doc("GPUs of one node.")] = None
    gpu_type: Annotated[
        OneWord | None, doc("Slurm's type of the GPU: a100; a MIG slice's name.")
    ] = None
    gpu_model: Annotated[str | None, doc("The GPU's name: A100-SXM4-40GB.")] = None
    gpu_peak_tflops: Annotated[
        dict[
            Annotated[str, Meta(pattern=r"^[a-z0-9_]+$(?!\n)")],
            Annotated[float, Meta(gt=0, le=1e6)],
        ],
        doc("Dense peak of one GPU by precision, TFLOP/s: {bf16: 312, tf32: 156}."),
    ] = {}
    gpu_order: Annotated[
        tuple[Gpus, ...], doc("The GPU nearest to each local rank's cores: [3, 2, 1, 0].")
    ] = ()
    nics_per_node: Annotated[Count | None, doc("Network adapters for data per node.")] = None
    nic_gbps: Annotated[Jobs | None, doc("Speed of one adapter, Gbit/s.")] = None
    interfaces: Annotated[tuple[Interface, ...], doc("Instead of network.interfaces.")] = ()
    hcas: Annotated[tuple[Hca, ...], doc("Instead of network.hcas.")] = ()
    modules: Annotated[tuple[Module, ...], doc("Loaded before the site's: arch/a100.")] = ()


HOST_METHOD = (
    r"^(loopback|first-host|batch-host|hostname-ip|resolver|(remote-)?address:[1-9]"
    r"|interface:[A-Za-z0-9][A-Za-z0-9_.-]*)$"
)
Template = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\.j2$(?!\n)",
        description="File name of the template of the job script, e.g. mysite.sbatch.j2.",
    ),
]


class Launchers(Value, frozen=True, kw_only=True):
    """The launchers of a site: allowed, default and forbidden ones, with reasons."""

    default: Annotated[LauncherName, doc("Used if a job names none.")]
    allowed: Annotated[tuple[LauncherName, ...], doc("Launchers that a job may name.")]
    forbidden: Annotated[dict[str, str], doc("launcher -> the site's reason")] = {}
    warned: Annotated[dict[str, str], doc("launcher -> why the site advises against it")] = {}
    srun_args: Annotated[
        tuple[str, ...], doc("More options of each srun, which has --kill-on-bad-exit=1 --wait=60.")
    ] = ()
    mpi: Annotated[OneWord | None, doc("srun --mpi=… for MPI: pmix, pmi2, cray_shasta, none.")] = (
        None
    )
    cpu_bind: Annotated[
        OneWord | None, doc("srun --cpu-bind=… of a rank, if the partition has none.")
    ] = None
    gpu_bind: Annotated[OneWord | None, doc("srun --gpu-bind=… of a rank that has one GPU.")] = None
    numa_binding: Annotated[
        Literal["node", "socket", "exclusive", "core-complex"] | None,
        doc("torchrun --numa-binding=…, from torch 2.9 on."),
    ] = None
    openmpi: Annotated[Version | None, doc("Open MPI's version: '4.1', '5'; default: 4.")] = None
    bind_to: Annotated[
        Literal["none", "core", "numa", "socket", "package"],
        doc("mpirun --bind-to …; core gives a rank cpus_per_task cores."),
    ] = "none"
    mpirun_args: Annotated[tuple[str, ...], doc("More options of mpirun.")] = ()


class Rendezvous(Value, frozen=True, kw_only=True):
    """Rendezvous of the ranks: how rank 0's host is found and which ports are tried.

    The ports should be outside Linux's ephemeral range, 32768-60999 by default.
    """

    host: Annotated[
        str,
        Meta(
            description="How rank 0's address is found: loopback, first-host, batch-host, "
            "hostname-ip, resolver, address:N, remote-address:N or interface:NAME.",
            extra_json_schema={"pattern": HOST_METHOD},
        ),
    ] = "first-host"
    suffix: Annotated[str, doc("Appended to the host name, e.g. 'i'.")] = ""
    port: Annotated[int, Meta(ge=1024, le=65535, description="First port tried.")] = 61000
    ports: Annotated[int, Meta(ge=1, le=60000, description="How many ports may be tried.")] = 4000


class PluginCheck(Value, frozen=True, kw_only=True):
    """A variable that forces a plug-in of NCCL, its value, and what provides the plug-in."""

    name: str
    value: str
    provider: str


class Preflight(Value, frozen=True, kw_only=True):
    """Checks of all nodes in parallel, before the ranks start; missing keys are not checked."""

    gpus: Annotated[bool, doc("The node has the requested number of GPUs.")] = True
    program: Annotated[bool, doc("The job's program, or its image, is on the node.")] = True
    names: Annotated[
        bool, doc("The node resolves rank 0's host, and that host resolves the node.")
    ] = True
    interfaces: Annotated[
        tuple[OneWord, ...], doc("Network interfaces that exist and are up.")
    ] = ()
    hcas: Annotated[
        tuple[OneWord, ...], doc("InfiniBand adapters that need an active port: mlx5_0.")
    ] = ()
    space: Annotated[
        dict[Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*$(?!\n)")], Memory],
        doc("Folder -> required free space: /dev/shm: 1G."),
    ] = {}
    memlock: Annotated[bool, doc("`ulimit -l` is unlimited, as InfiniBand needs it.")] = False
    clock: Annotated[Duration | None, doc("Allowed deviation of a node's clock, e.g. 2s.")] = None
    timeout: Annotated[Duration | None, doc("Timeout of a node's answer; default: 30 s.")] = None
