"""Partition and Qos: the queues of a site, the nodes behind them, and what a job may ask there."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.model.job import Count, Gpus, Module, Nodes, Word
from hpc_train.model.network import Hca, Interface
from hpc_train.model.units import Duration, Memory
from hpc_train.model.value import Value
from hpc_train.model.versions import NodeBounds, within

ANY = "*"
Jobs = Annotated[int, Meta(ge=1)]
Arch = Literal["x86_64", "aarch64"]
TotalGpus = Annotated[int, Meta(ge=0, le=1_000_000)]


class Select(Value, frozen=True, kw_only=True):
    """The words that bring a job to these nodes; what is absent is not written."""

    partition: Annotated[Word | None, Meta(description="--partition=…")] = None
    qos: Annotated[Word | None, Meta(description="--qos=…, where the job names none.")] = None
    constraint: Annotated[
        Word | None, Meta(description="--constraint=…; the job's own is joined with &.")
    ] = None
    account_suffix: Annotated[
        Word | None, Meta(description="Appended to the job's account: @a100, _g.")
    ] = None


class Bound(Value, frozen=True, kw_only=True):
    """Limits for the jobs that `nodes` and `account` describe, instead of the partition's own."""

    nodes: Annotated[
        NodeBounds | None, Meta(description="Node counts that this is for: '<=91', '>=2,<16'.")
    ] = None
    account: Annotated[
        str | None, Meta(description="Accounts that this is for, with * for any letters.")
    ] = None
    max_time: Annotated[Duration | None, Meta(description="Longest time limit.")] = None
    max_nodes: Annotated[Nodes | None, Meta(description="Most nodes of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, Meta(description="Most GPUs of one job.")] = None


class Qos(Value, frozen=True, kw_only=True):
    """A quality of service and its limits; what is absent is unknown."""

    name: Annotated[Word, Meta(description="As --qos=… takes it; * for any other.")]
    default: Annotated[bool, Meta(description="Taken when a job names none.")] = False
    partitions: Annotated[
        tuple[Word, ...], Meta(description="Partitions that it is for; default: all.")
    ] = ()
    max_time: Annotated[Duration | None, Meta(description="Longest time limit.")] = None
    max_nodes: Annotated[Nodes | None, Meta(description="Most nodes of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, Meta(description="Most GPUs of one job.")] = None
    max_node_minutes: Annotated[
        Jobs | None, Meta(description="Most nodes x minutes of one job.")
    ] = None
    max_jobs: Annotated[Jobs | None, Meta(description="Jobs of one user that run at once.")] = None


class Preemption(Value, frozen=True, kw_only=True):
    """How a job of this partition may be ended for another's sake."""

    grace: Annotated[Duration | None, Meta(description="From the first signal to the last.")] = None
    safe: Annotated[
        Duration | None, Meta(description="How long a job runs before it may happen.")
    ] = None
    warning: Annotated[bool, Meta(description="Whether any signal comes before.")] = True


class Partition(Value, frozen=True, kw_only=True):
    """A queue and the nodes behind it; what is absent is unknown."""

    name: Annotated[
        Word, Meta(description="What `partition:` of a job says; * for whatever it says.")
    ]
    description: Annotated[str | None, Meta(description="What it is for, in a few words.")] = None
    default: Annotated[bool, Meta(description="Taken when a job names none.")] = False
    select: Annotated[
        Select | None, Meta(description="How a job gets there; default: --partition=NAME.")
    ] = None
    nodes: Annotated[Nodes | None, Meta(description="How many nodes it has.")] = None
    min_nodes: Annotated[Nodes | None, Meta(description="Fewest nodes of one job.")] = None
    max_nodes: Annotated[Nodes | None, Meta(description="Most nodes of one job.")] = None
    min_gpus: Annotated[TotalGpus | None, Meta(description="Fewest GPUs of one job.")] = None
    max_gpus: Annotated[TotalGpus | None, Meta(description="Most GPUs of one job.")] = None
    min_time: Annotated[Duration | None, Meta(description="Shortest time limit.")] = None
    max_time: Annotated[Duration | None, Meta(description="Longest time limit.")] = None
    default_time: Annotated[
        Duration | None, Meta(description="Time limit of a job that asks for none.")
    ] = None
    max_node_minutes: Annotated[
        Jobs | None, Meta(description="Most nodes x minutes of one job.")
    ] = None
    max_jobs: Annotated[Jobs | None, Meta(description="Jobs of one user that run at once.")] = None
    bounds: Annotated[
        tuple[Bound, ...],
        Meta(description="Other limits by node count or account; of two, the later one counts."),
    ] = ()
    shared: Annotated[
        bool | None, Meta(description="Whether jobs of others may run on the same node.")
    ] = None
    preemption: Annotated[
        Preemption | None, Meta(description="Given where jobs may be ended for others.")
    ] = None
    arch: Annotated[Arch | None, Meta(description="Of the nodes; default: the site's.")] = None
    cpus_per_node: Annotated[
        Count | None, Meta(description="Cores that a job may use on one node.")
    ] = None
    reserved_cpus: Annotated[
        Count | None, Meta(description="Cores of a node that jobs do not get.")
    ] = None
    threads_per_core: Annotated[Count | None, Meta(description="Hardware threads.")] = None
    cpus_per_gpu: Annotated[
        Count | None, Meta(description="Cores that go with one GPU, in what Slurm calls CPUs.")
    ] = None
    cpu_rule: Annotated[
        Literal["share", "exact", "max"],
        Meta(description="cpus_per_gpu is a default, the only ratio accepted, or the most."),
    ] = "share"
    cpu_bind: Annotated[
        Word | None, Meta(description="srun --cpu-bind=… of a rank; masks only on whole nodes.")
    ] = None
    mem_per_node: Annotated[Memory | None, Meta(description="Most memory of a job.")] = None
    mem_per_gpu: Annotated[Memory | None, Meta(description="Memory that goes with a GPU.")] = None
    gpus_per_node: Annotated[Gpus | None, Meta(description="GPUs of one node.")] = None
    gpu_type: Annotated[
        Word | None, Meta(description="Slurm's word for the GPU: a100; a MIG slice's name.")
    ] = None
    gpu_model: Annotated[str | None, Meta(description="The GPU's name: A100-SXM4-40GB.")] = None
    gpu_order: Annotated[
        tuple[Gpus, ...],
        Meta(description="The GPU nearest to each local rank's cores: [3, 2, 1, 0]."),
    ] = ()
    nics_per_node: Annotated[Count | None, Meta(description="Network adapters for data.")] = None
    nic_gbps: Annotated[Jobs | None, Meta(description="Speed of one adapter, Gbit/s.")] = None
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
    """Return the last bound that stands instead of the partition's own `key`, with its place."""
    found = None
    for index, bound in enumerate(partition.bounds):
        size = bound.nodes is None or within((nodes,), bound.nodes)
        payer = bound.account is None or fnmatchcase(account or "", bound.account)
        if getattr(bound, key) is not None and size and payer:
            found = index, bound
    return found
