"""The facts on which the network rules depend, resolved once."""

from __future__ import annotations

import re

import msgspec

from hpc_train.base.value import Parts, Value, parts
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context
from hpc_train.plans.launchers.base import Launcher
from hpc_train.sites.batch_system import BatchSystem
from hpc_train.sites.partition import Network, Runtime, Vendor

_AMD = re.compile(r"(?:amd|mi\d|gfx\d|instinct)", re.IGNORECASE)
_NVIDIA = re.compile(
    r"(?:nvidia|tesla|quadro|geforce|rtx|g?[bh]\d00|gb300|gh200|[avp]100|[alp]40|a[123]0|l4s?$|t4$)",
    re.IGNORECASE,
)


class NetworkContext(Value, frozen=True, kw_only=True):
    """The facts of a job for the network rules; None means unknown.

    `runtimes` are the libraries that transfer data between ranks: of the backend and, under mpirun,
    MPI. `places` are the keys of the network that are set elsewhere in the profile.
    """

    network: Network
    nodes: int
    partition: str | None
    launcher: Launcher
    batch: BatchSystem
    vendor: Vendor | None
    nccl: Parts | None
    runtimes: tuple[Runtime, ...]
    container: bool
    places: dict[str, str]


def network_context(context: Context, topology: Topology, backend: str) -> NetworkContext:
    """Collect the facts; the GPU vendor is derived from the partition's gpu_type if necessary."""
    network = network_of(context)
    vendor = vendor_of(context, topology)
    return NetworkContext(
        network=network,
        nodes=topology.nodes,
        partition=context.job.value.partition,
        launcher=context.launcher,
        batch=context.batch,
        vendor=vendor,
        nccl=parts(network.nccl) if network.nccl else None,
        runtimes=_runtimes(network, vendor, context.launcher, backend),
        container=context.job.value.container is not None,
        places={f"network.{key}": context.key(key) for key in _own(context)},
    )


def network_of(context: Context) -> Network:
    """Return the site's network, with the values that the job's partition overrides."""
    return msgspec.structs.replace(context.site.value.network or Network(), **_own(context))


def _own(context: Context) -> dict[str, tuple[str, ...]]:
    """Return the keys of the network that the partition overrides."""
    given = {"interfaces": context.partition.interfaces, "hcas": context.partition.hcas}
    return {key: names for key, names in given.items() if names}


def vendor_of(context: Context, topology: Topology) -> Vendor | None:
    """Return the GPU vendor of a job, from the profile or its partition's `gpu_type`."""
    if not topology.gpus_per_node:
        return "none"
    network = context.site.value.network
    return (network.gpus if network else None) or _vendor(context.partition.gpu_type)


def _vendor(gpu_type: str | None) -> Vendor | None:
    for vendor, pattern in (("amd", _AMD), ("nvidia", _NVIDIA)):
        if gpu_type and pattern.match(gpu_type):
            return vendor  # type: ignore[return-value]
    return None


def _runtimes(
    network: Network, vendor: Vendor | None, launcher: Launcher, backend: str
) -> tuple[Runtime, ...]:
    found: list[Runtime] = []
    if backend == "nccl":
        found.append("rccl" if vendor == "amd" else "nccl")
    if backend == "gloo":
        found.append("gloo")
    if backend == "mpi" or launcher.open_mpi:
        found.append("mpi")
        if network.fabric in ("infiniband", "roce"):
            found.append("ucx")
    return tuple(found)
