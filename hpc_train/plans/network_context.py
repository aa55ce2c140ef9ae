"""What the rules for the network ask of a job on a site, resolved once."""

from __future__ import annotations

import re

import msgspec

from hpc_train.model.network import Network, Runtime, Vendor
from hpc_train.model.plan import Topology
from hpc_train.model.value import Value
from hpc_train.model.versions import Parts, parts
from hpc_train.plans.context import Job, Site, partition_of

_AMD = re.compile(r"(?:amd|mi\d|gfx\d|instinct)", re.IGNORECASE)
_NVIDIA = re.compile(
    r"(?:nvidia|tesla|quadro|geforce|rtx|g?[bh]\d00|gb300|gh200|[avp]100|[alp]40|a[123]0|l4s?$|t4$)",
    re.IGNORECASE,
)


class Facts(Value, frozen=True, kw_only=True):
    """A job's place in the network; None is unknown.

    `runtimes` are what moves data between ranks: the backend's library and, below mpirun, MPI's.
    `places` says which of the network's keys stand elsewhere in the profile.
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
    places: dict[str, str]


def facts_of(job: Job, site: Site, topology: Topology, launcher: str, backend: str) -> Facts:
    """Gather the facts; whose GPUs they are follows from the partition's gpu_type if need be."""
    network = network_of(job, site)
    vendor = vendor_of(job, site, topology)
    return Facts(
        network=network,
        nodes=topology.nodes,
        partition=job.value.partition,
        launcher=launcher,
        scheduler=site.value.scheduler,
        vendor=vendor,
        nccl=parts(network.nccl) if network.nccl else None,
        runtimes=_runtimes(network, vendor, launcher, backend),
        container=job.value.container is not None,
        places={f"network.{key}": place for key, (place, _) in _own(job, site).items()},
    )


def network_of(job: Job, site: Site) -> Network:
    """Return the site's network, with the names that the job's partition has instead."""
    own = {key: names for key, (_, names) in _own(job, site).items()}
    return msgspec.structs.replace(site.value.network or Network(), **own)


def _own(job: Job, site: Site) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return what of the network is the partition's own, with the key that says so."""
    found = partition_of(job, site)
    if found is None:
        return {}
    given = {"interfaces": found[1].interfaces, "hcas": found[1].hcas}
    return {key: (f"partitions.{found[0]}.{key}", names) for key, names in given.items() if names}


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
