"""Partition and Qos: the queues of a site, their nodes, and their limits."""

from fnmatch import fnmatchcase
from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.units import Duration, Memory
from hpc_train.base.value import Value
from hpc_train.base.version_ranges import NodeBounds, within
from hpc_train.jobs.job import Count, Gpus, Module, Nodes, OneWord
from hpc_train.sites.network import Hca, Interface

ANY = "*"
Jobs = Annotated[int, Meta(ge=1)]
Arch = Literal["x86_64", "aarch64"]
Nics = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,30}(,[A-Za-z0-9][A-Za-z0-9_.-]{0,30}){0,15}$(?!\n)"
    ),
]
CpuList = Annotated[str, Meta(pattern=r"^[0-9]{1,6}[-,0-9]{0,1000}$(?!\n)")]
TotalGpus = Annotated[int, Meta(ge=0, le=1_000_000)]


class Select(Value, frozen=True, kw_only=True):
    """Options that select these nodes; missing keys are not written."""

    partition: Annotated[OneWord | None, Meta(description="--partition=…")] = None
    qos: Annotated[OneWord | None, Meta(description="--qos=…, if the job names none.")] = None
    constraint: Annotated[
        OneWord | None, Meta(description="--constraint=…; the job's own is joined with &.")
    ] = None
    account_suffix: Annotated[
        OneWord | None, Meta(description="Appended to the job's account: @a100, _g.")
    ] = None


class Bound(Value, frozen=True, kw_only=True):
    """Limits for the jobs that `nodes` and `account` describe, instead of the partition's."""

    nodes: Annotated[
        NodeBounds | None,
        Meta(description="Node counts that the limits apply to: '<=91', '>=2,<16'."),
    ] = None
    account: Annotated[
        str | None, Meta(description="Accounts that the limits apply to, with * for any letters.")
    ] = None
    max_time: Annotated[Duration | None, Meta(description="Longest time limit.")] = None
    max_nodes: Annotated[Nodes | None, Meta(description="Most nodes of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, Meta(description="Most GPUs of one job.")] = None


class Qos(Value, frozen=True, kw_only=True):
    """A quality of service and its limits; missing keys are unknown."""

    name: Annotated[OneWord, Meta(description="Argument of --qos=…; * for any other.")]
    default: Annotated[bool, Meta(description="Taken when a job names none.")] = False
    partitions: Annotated[
        tuple[OneWord, ...], Meta(description="Partitions that it applies to; default: all.")
    ] = ()
    max_time: Annotated[Duration | None, Meta(description="Longest time limit.")] = None
    max_nodes: Annotated[Nodes | None, Meta(description="Most nodes of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, Meta(description="Most GPUs of one job.")] = None
    max_node_minutes: Annotated[
        Jobs | None, Meta(description="Most nodes x minutes of one job.")
    ] = None
    max_jobs: Annotated[Jobs | None, Meta(description="Jobs of one user that run at once.")] = None


class Preemption(Value, frozen=True, kw_only=True):
    """How a job of this partition may be preempted."""

    grace: Annotated[
        Duration | None, Meta(description="Time from the first signal to the last.")
    ] = None
    safe: Annotated[
        Duration | None, Meta(description="Run time before a job may be preempted.")
    ] = None
    warning: Annotated[bool, Meta(description="Whether a signal is sent before.")] = True


class Partition(Value, frozen=True, kw_only=True):
    """A queue and its nodes; missing keys are unknown."""

    name: Annotated[
        OneWord, Meta(description="The value of `partition:` in a job; * for any value.")
    ]
    description: Annotated[str | None, Meta(description="Purpose, in a few words.")] = None
    default: Annotated[bool, Meta(description="Taken when a job names none.")] = False
    select: Annotated[
        Select | None, Meta(description="How a job selects it; default: --partition=NAME.")
    ] = None
    nodes: Annotated[Nodes | None, Meta(description="Number of its nodes.")] = None
    min_nodes: Annotated[Nodes | None, Meta(description="Fewest nodes of one job.")] = None
    max_nodes: Annotated[Nodes | None, Meta(description="Most nodes of one job.")] = None
    min_gpus: Annotated[TotalGpus | None, Meta(description="Fewest GPUs of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, Meta(description="Most GPUs of one job.")] = None
    min_time: Annotated[Duration | None, Meta(description="Shortest time limit.")] = None
    max_time: Annotated[Duration | None, Meta(description="Longest time limit.")] = None
    default_time: Annotated[
        Duration | None, Meta(description="Time limit of a job that requests none.")
    ] = None
    max_node_minutes: Annotated[
        Jobs | None, Meta(description="Most nodes x minutes of one job.")
    ] = None
    max_jobs: Annotated[Jobs | None, Meta(description="Jobs of one user that run at once.")] = None
    bounds: Annotated[
        tuple[Bound, ...],
        Meta(description="Other limits by node count or account; the last matching entry counts."),
    ] = ()
    shared: Annotated[
        bool | None, Meta(description="Whether jobs of other users may run on the same node.")
    ] = None
    exclusive: Annotated[bool, Meta(description="Whether jobs request whole nodes by default.")] = (
        False
    )
    preemption: Annotated[
        Preemption | None, Meta(description="Present if jobs may be preempted.")
    ] = None
    arch: Annotated[
        Arch | None, Meta(description="Processor architecture of the nodes; default: the site's.")
    ] = None
    cpus_per_node: Annotated[
        Count | None, Meta(description="Cores that a job may use on one node.")
    ] = None
    reserved_cpus: Annotated[
        Count | None, Meta(description="Cores of a node that jobs cannot use.")
    ] = None
    threads_per_core: Annotated[Count | None, Meta(description="Hardware threads of a core.")] = (
        None
    )
    cpus_per_gpu: Annotated[Count | None, Meta(description="Cores per GPU, in Slurm's CPUs.")] = (
        None
    )
    cpu_rule: Annotated[
        Literal["share", "exact", "max"],
        Meta(
            description=(
                "cpus_per_gpu is a default (share), the only accepted ratio (exact), or the "
                "maximum (max)."
            )
        ),
    ] = "share"
    cpu_bind: Annotated[
        OneWord | None, Meta(description="srun --cpu-bind=… of a rank; masks only on whole nodes.")
    ] = None
    mem_per_node: Annotated[Memory | None, Meta(description="Most memory of a job on a node.")] = (
        None
    )
    mem_per_gpu: Annotated[Memory | None, Meta(description="Memory per GPU.")] = None
    gpus_per_node: Annotated[Gpus | None, Meta(description="GPUs of one node.")] = None
    gpu_type: Annotated[
        OneWord | None, Meta(description="Slurm's type of the GPU: a100; a MIG slice's name.")
    ] = None
    gpu_model: Annotated[str | None, Meta(description="The GPU's name: A100-SXM4-40GB.")] = None
    gpu_peak_tflops: Annotated[
        dict[
            Annotated[str, Meta(pattern=r"^[a-z0-9_]+$(?!\n)")],
            Annotated[float, Meta(gt=0, le=1e6)],
        ],
        Meta(description="Dense peak of one GPU by precision, TFLOP/s: {bf16: 312, tf32: 156}."),
    ] = {}
    gpu_order: Annotated[
        tuple[Gpus, ...],
        Meta(description="The GPU nearest to each local rank's cores: [3, 2, 1, 0]."),
    ] = ()
    numa_cpus: Annotated[
        tuple[CpuList, ...],
        Meta(description="Cores of each NUMA node, as Linux lists them: ['0-15', '16-31']."),
    ] = ()
    gpu_numa: Annotated[
        tuple[Gpus, ...], Meta(description="The NUMA node of each GPU: [3, 2, 1, 0].")
    ] = ()
    gpu_nics: Annotated[
        tuple[Nics, ...],
        Meta(description="The nearest adapters of each GPU: ['mlx5_0', 'mlx5_1,mlx5_2']."),
    ] = ()
    price_per_node_hour: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Price of a node for an hour, in report.currency."),
    ] = None
    nics_per_node: Annotated[
        Count | None, Meta(description="Network adapters for data per node.")
    ] = None
    nic_gbps: Annotated[Jobs | None, Meta(description="Speed of one adapter, Gbit/s.")] = None
    nodes_per_switch: Annotated[
        Count | None, Meta(description="Nodes of a leaf switch in Slurm's topology/tree.")
    ] = None
    nodes_per_block: Annotated[
        Count | None, Meta(description="Nodes of a block in Slurm's topology/block.")
    ] = None
    interfaces: Annotated[
        tuple[Interface, ...], Meta(description="Instead of network.interfaces.")
    ] = ()
    hcas: Annotated[tuple[Hca, ...], Meta(description="Instead of network.hcas.")] = ()
    modules: Annotated[
        tuple[Module, ...], Meta(description="Loaded before the site's: arch/a100.")
    ] = ()


def bound_for(
    partition: Partition, key: str, nodes: int, account: str | None
) -> tuple[int, Bound] | None:
    """Return the last matching bound that replaces the partition's `key`, with its origin."""
    found = None
    for index, bound in enumerate(partition.bounds):
        size = bound.nodes is None or within((nodes,), bound.nodes)
        payer = bound.account is None or fnmatchcase(account or "", bound.account)
        if getattr(bound, key) is not None and size and payer:
            found = index, bound
    return found
