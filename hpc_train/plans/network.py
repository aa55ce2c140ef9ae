"""The network of a job: fabric, interfaces, variables of NCCL, backend of torch.distributed."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Value
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context, other_launchers
from hpc_train.plans.launchers.base import Launcher
from hpc_train.plans.plan import Setting
from hpc_train.sites.partition import Network, Runtime, Vendor

_AMD = re.compile(r"(?:amd|mi\d|gfx\d|instinct)", re.IGNORECASE)
_NVIDIA = re.compile(
    r"(?:nvidia|tesla|quadro|geforce|rtx|g?[bh]\d00|gb300|gh200|[avp]100|[alp]40|a[123]0|l4s?$|t4$)",
    re.IGNORECASE,
)


class NetworkContext(Value, frozen=True, kw_only=True):
    """The facts of a job for the network rules; None means unknown.

    `runtimes` are the libraries that transfer data between ranks: of the backend and, under mpirun,
    MPI.
    """

    context: Context
    network: Network
    nodes: int
    vendor: Vendor | None
    runtimes: tuple[Runtime, ...]


def network_context(context: Context, topology: Topology, backend: str) -> NetworkContext:
    """Collect the facts; the GPU vendor is derived from the partition's gpu_type if necessary."""
    network = network_of(context)
    vendor = vendor_of(context, topology)
    return NetworkContext(
        context=context,
        network=network,
        nodes=topology.nodes,
        vendor=vendor,
        runtimes=_runtimes(network, vendor, context.launcher, backend),
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
    if network and network.gpus:
        return network.gpus
    gpu_type = context.partition.gpu_type or ""
    return "amd" if _AMD.match(gpu_type) else "nvidia" if _NVIDIA.match(gpu_type) else None


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


NCCL_DOCS = "NVIDIA, NCCL user guide: environment variables"
SLINGSHOT_DOCS = "HPE, recipe for NCCL and RCCL on Slingshot"
EFA_DOCS = "AWS, aws-ofi-nccl: EFA environment variables"
MPI_DOCS = "Open MPI documentation: InfiniBand, RoCE and libfabric"
TORCH_DOCS = "PyTorch, torch.distributed: choosing the network interface"
ALT_READ = "alt_read"
# Both are required: the protocol works only if the option disables rdzv_get.
RDZV_VARIABLE, RDZV_NETWORK = "FI_CXI_RDZV_PROTO", "disable_rdzv_get"
RDZV_COMPANIONS = tuple(f"FI_CXI_RDZV_{name}" for name in ("EAGER_SIZE", "THRESHOLD", "GET_MIN"))
_LOUD = "a job that cannot use it fails instead of falling back to slow TCP"


class Rule(NamedTuple):
    """A variable that the fabric requires; `key` is its key in the profile."""

    name: str
    value: str
    why: str
    source: str = NCCL_DOCS
    key: str = "network.fabric"


def network_settings(facts: NetworkContext) -> dict[str, Setting]:
    """Return variable -> setting for a job; empty if the fabric is unknown."""
    context, settings = facts.context, {}
    for one in _rules(facts):
        key, origin = one.key.removeprefix("network."), "rule"
        if key != "fabric":
            place = context.key(key) if key in _own(context) else one.key
            origin = context.site.near(place)
        settings[one.name] = Setting(value=one.value, origin=origin, why=one.why, source=one.source)
    return settings


def script_of(facts: NetworkContext) -> str | None:
    """Return the vendor's script that the job sources, on any number of nodes."""
    return facts.network.script if _collective(facts) else None


def _collective(facts: NetworkContext) -> bool:
    return not {"nccl", "rccl"}.isdisjoint(facts.runtimes)


def _rules(facts: NetworkContext) -> Iterator[Rule]:
    fabric = facts.network.fabric
    if fabric is None:
        return
    if facts.nodes == 1:
        if fabric == "slingshot" and _collective(facts):
            why = "a job of one node has no Slingshot network, and NCCL's plug-in for it would fail"
            yield Rule("NCCL_NET", "Socket", why, SLINGSHOT_DOCS)
        return
    yield from _sockets(facts)
    if _collective(facts):
        own = facts.network.plugin not in (None, "none")
        # An exact name, because the built-in network would take precedence over the plug-in.
        built_in = [("NCCL_NET", "IB"), ("NCCL_NET", "Socket")] if own else []
        yield from (r for r in _of_fabric(facts) if (r.name, r.value) not in built_in)
        if facts.network.plugin:
            why = "the plug-in that the site's profile names"
            yield Rule("NCCL_NET_PLUGIN", facts.network.plugin, why, key="network.plugin")
        if "rccl" in facts.runtimes and fabric in ("infiniband", "roce", "slingshot"):
            why = "AMD: memory of GPUs must be fine-grained for RCCL to send it over PCIe"
            yield Rule("HSA_FORCE_FINE_GRAIN_PCIE", "1", why, "AMD, RCCL documentation")
    if facts.context.launcher.open_mpi:
        yield from _open_mpi(facts)


def _sockets(facts: NetworkContext) -> Iterator[Rule]:
    network, names = facts.network, ",".join(facts.network.interfaces)
    if names:
        why = "exact names; otherwise gloo uses the address of the host name"
        yield Rule("GLOO_SOCKET_IFNAME", names, why, TORCH_DOCS, "network.interfaces")
    if names and _collective(facts):
        why = "from the profile alone; with `=`, because eth1 alone would also match eth10"
        yield Rule("NCCL_SOCKET_IFNAME", f"={names}", why, key="network.interfaces")
    elif network.exclude_interfaces and _collective(facts):
        excluded = f"^{','.join(network.exclude_interfaces)}"
        why = "from the profile alone; by prefix, and lo must be named, too"
        yield Rule("NCCL_SOCKET_IFNAME", excluded, why, key="network.exclude_interfaces")


def _adapters(facts: NetworkContext) -> Iterator[Rule]:
    network = facts.network
    if network.hcas:
        why = "the adapters for data; with `=`, because mlx5_1 alone would also match mlx5_10"
        yield Rule("NCCL_IB_HCA", f"={','.join(network.hcas)}", why, key="network.hcas")
    if network.gdr_level:
        why = "a word, because the numbers have changed their meaning"
        yield Rule("NCCL_NET_GDR_LEVEL", network.gdr_level, why, key="network.gdr_level")


def _slingshot(facts: NetworkContext) -> Iterator[Rule]:
    network = facts.network
    level = network.gdr_level or "PHB"
    key = "network.gdr_level" if network.gdr_level else "network.fabric"
    cache = "memhooks, the default, is not safe below NCCL"
    for name, value, why in (
        ("NCCL_NET", "AWS Libfabric", f"the name that all versions of the plug-in accept; {_LOUD}"),
        ("NCCL_CROSS_NIC", "1", "all NICs are on one fabric"),
        ("FI_MR_CACHE_MONITOR", "userfaultfd", cache),
        (
            "FI_CXI_DISABLE_HOST_REGISTER",
            "1",
            "registering host memory with the GPU may hang beside NCCL",
        ),
        ("FI_CXI_DEFAULT_CQ_SIZE", "131072", "many messages are under way at once"),
        ("FI_CXI_DEFAULT_TX_SIZE", "2048", "many messages are under way at once"),
        ("FI_CXI_RX_MATCH_MODE", "hybrid", "software takes over when the NIC's lists are full"),
        ("MPICH_GPU_SUPPORT_ENABLED", "0", "NCCL beside an MPI that sends GPU memory may hang"),
    ):
        yield Rule(name, value, why, SLINGSHOT_DOCS)
    why = "the NIC reads GPU memory up to this distance"
    yield Rule("NCCL_NET_GDR_LEVEL", level, why, SLINGSHOT_DOCS, key)
    if network.alt_read and facts.context.batch.network_option:
        key, why = "network.alt_read", f"together with --network={RDZV_NETWORK}, never without"
        yield Rule(RDZV_VARIABLE, ALT_READ, why, SLINGSHOT_DOCS, key)
        why = f"with {ALT_READ}, every message takes the same way"
        for name in RDZV_COMPANIONS:
            yield Rule(name, "0", why, SLINGSHOT_DOCS, key)


def _of_fabric(facts: NetworkContext) -> Iterator[Rule]:
    """Yield what a fabric requires; the variables of others are set by their vendor's script."""
    fabric = facts.network.fabric
    if fabric == "infiniband":
        yield Rule("NCCL_NET", "IB", _LOUD)
        yield from _adapters(facts)
    elif fabric == "roce":
        yield Rule("NCCL_NET", "IB", f"RoCE is NCCL's IB, too; {_LOUD}")
        yield from _adapters(facts)
    elif fabric == "slingshot":
        yield from _slingshot(facts)
    elif fabric == "efa":
        why = "the plug-in sets everything else by the type of the machine"
        yield Rule("FI_PROVIDER", "efa", why, EFA_DOCS)
    elif fabric == "ethernet":
        why = "no RDMA here: NCCL must not use an adapter that is not connected"
        yield Rule("NCCL_NET", "Socket", why)


def _open_mpi(facts: NetworkContext) -> Iterator[Rule]:
    """Select the layer that supports the fabric, so that MPI does not fall back to TCP."""
    fabric = facts.network.fabric
    if fabric in ("infiniband", "roce"):
        yield Rule("OMPI_MCA_pml", "ucx", f"Open MPI reaches it through UCX; {_LOUD}", MPI_DOCS)
    if fabric == "slingshot":
        yield Rule("OMPI_MCA_pml", "cm", "libfabric through cm; UCX does not support it", MPI_DOCS)
        yield Rule("OMPI_MCA_mtl", "ofi", "libfabric, below cm", MPI_DOCS)


VARIABLE = "HPCTRAIN_BACKEND"
_SOURCE = "PyTorch, torch.distributed: which backend to use"
_DIRECT = "GPUs: nccl alone reaches InfiniBand and GPUs directly; AMD's RCCL has that name, too"


def resolve_backend(context: Context, topology: Topology) -> Setting:
    """Return the backend; `auto` follows PyTorch's own rules.

    Raises:
        PlanError: the backend does not support the job.
    """
    job, site = context.job, context.site
    for sourced in (job, site):
        if VARIABLE in sourced.value.env:
            raise PlanError(
                f"{sourced.near(f'env.{VARIABLE}')}: {VARIABLE} is set by the job's backend",
                "write `backend: nccl`, gloo or mpi in the job, or --set backend=gloo",
            )
    network, gpus = site.value.network or Network(), topology.gpus_per_node
    if job.value.backend == "auto":
        name, why = "gloo", "CPUs: gloo"
        if gpus:
            name, why = "nccl", _DIRECT
        if gpus and network.gpus == "intel":
            name, why = "xccl", "Intel's GPUs: xccl"
        return Setting(value=name, origin="rule", why=why, source=_SOURCE)
    chosen = Setting(value=job.value.backend, origin=job.origin("backend"))
    if chosen.value == "nccl" and not gpus:
        raise PlanError(
            f"{chosen.origin}: backend nccl needs GPUs, and the job has none",
            "request them with resources.gpus_per_node, or use backend gloo",
        )
    launcher = context.launcher
    if chosen.value == "mpi" and not (launcher.mpi or launcher.one_rank):
        raise PlanError(
            f"{chosen.origin}: backend mpi needs ranks that MPI starts; {launcher.name} starts "
            "others",
            f"{other_launchers(context, lambda one: one.mpi)}, or backend gloo",
        )
    return chosen


def follows_from_gpus(topology: Topology) -> str:
    """Return the backend that torch selects for these devices."""
    return "nccl" if topology.gpus_per_node else "gloo"
