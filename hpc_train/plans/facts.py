"""What the rules for the network ask of a job on a site, resolved once."""

from __future__ import annotations

import re

from hpc_train.model.network import Network, Runtime, Vendor
from hpc_train.model.plan import Topology
from hpc_train.model.value import Value
from hpc_train.model.versions import Parts, parts
from hpc_train.plans.resolve import Job, Site, partition_of

_AMD = re.compile(r"(?:amd|mi\d|gfx\d|instinct)", re.IGNORECASE)
_NVIDIA = re.compile(
    r"(?:nvidia|tesla|quadro|geforce|rtx|g?[bh]\d00|gb300|gh200|[avp]100|[alp]40|a[123]0|l4s?$|t4$)",
    re.IGNORECASE,
)


class Facts(Value, frozen=True, kw_only=True):
    """A job's place in the network; None is unknown.

    `runtimes` are what moves data between ranks: the backend's library and, below mpirun, MPI's.
    """

    network: Network
    nodes: int
    partition: str | None
    launcher: str
    scheduler: str
    vendor: Vendor | None
    nccl: Parts | None
    runtimes: tuple[Runtime, ...]
    container: bool


def facts_of(job: Job, site: Site, topology: Topology, launcher: str, backend: str) -> Facts:
    """Gather the facts; whose GPUs they are follows from the partition's gpu_type if need be."""
    network = site.value.network or Network()
    found = partition_of(job, site)
    vendor = vendor_of(job, site, topology)
    return Facts(
        network=network,
        nodes=topology.nodes,
        partition=found[1].name if found else job.value.partition,
        launcher=launcher,
        scheduler=site.value.scheduler,
        vendor=vendor,
        nccl=parts(network.nccl) if network.nccl else None,
        runtimes=_runtimes(network, vendor, launcher, backend),
        container=job.value.container is not None,
    )


def vendor_of(job: Job, site: Site, topology: Topology) -> Vendor | None:
    """Return whose GPUs a job has: the profile says it, or its partition's `gpu_type` does."""
    if not topology.gpus_per_node:
        return "none"
    found = partition_of(job, site)
    said = site.value.network.gpus if site.value.network else None
    return said or _vendor(found[1].gpu_type if found else None)


def _vendor(gpu_type: str | None) -> Vendor | None:
    for vendor, pattern in (("amd", _AMD), ("nvidia", _NVIDIA)):
        if gpu_type and pattern.match(gpu_type):
            return vendor  # type: ignore[return-value]
    return None


def _runtimes(
    network: Network, vendor: Vendor | None, launcher: str, backend: str
) -> tuple[Runtime, ...]:
    found: list[Runtime] = []
    if backend == "nccl":
        found.append("rccl" if vendor == "amd" else "nccl")
    if backend == "gloo":
        found.append("gloo")
    if backend == "mpi" or launcher == "mpirun":
        found.append("mpi")
        if network.fabric in ("infiniband", "roce"):
            found.append("ucx")
    return tuple(found)
