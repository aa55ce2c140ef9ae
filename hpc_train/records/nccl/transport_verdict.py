"""Transport and the network of the site profile -> Transport with verdict and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from hpc_train.model.site_network import Fabric, Network
from hpc_train.model.transport import Transport, TransportFinding
from hpc_train.records.nccl.hardware_checks import link_layers, link_speeds, p2p_disabled
from hpc_train.records.nccl.transport_labels import GDR, SOCKET, fabric_of, network_names, word_of

_SLOW: tuple[Fabric | None, ...] = (None, "ethernet")
# Fabrics for which NCCL needs a plug-in; without it, NCCL uses sockets.
_PLUGINS: dict[Fabric, str] = {
    "slingshot": "aws-ofi-nccl",
    "efa": "aws-ofi-nccl",
    "gcp-tcpx": "GPUDirect-TCPX",
    "gcp-tcpxo": "FasTrak",
    "gcp-gib": "gIB",
}
# The names of the networks of each fabric: prefixes, in lower case.
_NAMES: dict[Fabric, tuple[str, ...]] = {
    "infiniband": ("ib", "ucx", "sharp", "nccl rdma"),
    "roce": ("ib", "ucx", "nccl rdma", "anp", "gib"),
    "slingshot": ("aws libfabric", "libfabric", "ofi"),
    "efa": ("aws libfabric", "libfabric", "ofi"),
    "gcp-tcpx": ("gpudirecttcpx", "tcpx"),
    "gcp-tcpxo": ("fastrak", "gpudirecttcpxo", "tcpxo"),
    "gcp-gib": ("gib", "ib"),
}
_TCP = ("tcp", "sockets", "udp")
TransportRule = Callable[[Transport, Network], Iterator[TransportFinding]]


def verdict(facts: Transport, promised: Network | None = None) -> Transport:
    """Return the transport with its findings, also of a comparison with the profile's network.

    A run on one node needs no network: its only finding is GPUs without direct access to each
    other.
    """
    network = promised or Network()
    findings = [finding for rule in _RULES for finding in rule(facts, network)]
    return msgspec.structs.replace(facts, verdict=word_of(facts), findings=tuple(findings))


def _sockets(facts: Transport, promised: Network) -> Iterator[TransportFinding]:
    if "Socket" not in network_names(facts) or promised.fabric == "ethernet":
        return
    channels = sum(n for kind, n in facts.between_nodes.items() if kind.startswith(SOCKET))
    better = promised.fabric not in _SLOW or bool(facts.adapters)
    over = f" over {', '.join(facts.interfaces[:4])}" if facts.interfaces else ""
    asked = f"; the profile promises {promised.fabric}" if promised.fabric else ""
    many = f" ({channels} channels)" if channels else ""
    yield TransportFinding(
        id="nccl_socket_transport",
        severity="error" if better else "warning",
        message=f"TCP sockets carry NCCL's data between nodes{over}{many}{asked}",
        advice=_socket_advice(facts, promised),
        evidence=facts.places(SOCKET, "network", "plugin missing", "env"),
    )


def _socket_advice(facts: Transport, promised: Network) -> str:
    for name, value in (("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")):
        if facts.environment.get(name) == value:
            return f"take {name}={value} out of the environment"
    if promised.fabric in _PLUGINS:
        return f"put {_PLUGINS[promised.fabric]} on LD_LIBRARY_PATH, in the container as well"
    if promised.fabric in ("infiniband", "roce") or facts.adapters:
        return (
            "look for /dev/infiniband and ibv_devinfo on the node and inside the container; "
            "NCCL_IB_HCA must name adapters with an active port"
        )
    return "run `hpctrain doctor` on a node: it lists adapters that NCCL could use"


def _no_gdr(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    kinds = [kind for kind in facts.between_nodes if _direct(kind)]
    if not kinds or any(kind.endswith(GDR) for kind in kinds):
        return
    channels = sum(facts.between_nodes[kind] for kind in kinds)
    yield TransportFinding(
        id="nccl_no_gpudirect",
        severity="warning",
        message=f"{fabric_of(kinds[0].partition('/')[2], facts)} without GPUDirect RDMA: all "
        f"{channels} channels between nodes go through the host's memory",
        advice=_gdr_advice(facts),
        evidence=facts.places(kinds[0], "gdr refused", "gdr disabled", "gdr far"),
    )


def _some_gdr(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    direct = {kind: n for kind, n in facts.between_nodes.items() if _direct(kind)}
    have = sum(n for kind, n in direct.items() if kind.endswith(GDR))
    lack = sum(direct.values()) - have
    if not have or not lack:
        return
    where = ", ".join(facts.without_gdr[:6]) + (" …" if len(facts.without_gdr) > 6 else "")
    first = next(kind for kind in direct if not kind.endswith(GDR))
    yield TransportFinding(
        id="nccl_mixed_gpudirect",
        severity="info" if facts.gdr_only_received else "warning",
        message=f"GPUDirect RDMA on {have} channels between nodes, not on {lack}: {where}",
        advice="NCCL reads from GPUs this way only over NVLink or with NCCL_NET_GDR_READ=1"
        if facts.gdr_only_received
        else f"compare these adapters and hosts with the others; {_gdr_advice(facts)}",
        evidence=facts.places(first),
    )


def _gdr_advice(facts: Transport) -> str:
    level = facts.environment.get("NCCL_NET_GDR_LEVEL")
    if level in ("0", "LOC"):
        return f"NCCL_NET_GDR_LEVEL={level} turns it off; PHB or PXB allow it"
    if "gdr refused" in facts.first:
        return (
            "the plug-in reports no GPUDirect: this type of node lacks it, or "
            "libfabric was built without it (`fi_info -c FI_HMEM`)"
        )
    if "gdr far" in facts.first:
        return (
            "GPU and adapter are farther apart than NCCL allows: give each rank the GPU beside its "
            "adapter, or raise NCCL_NET_GDR_LEVEL"
        )
    far = f" (it is {level} now)" if level else ""
    return (
        "load nvidia_peermem, or a driver with DMA-BUF, on the nodes; where GPU and adapter are "
        f"far apart, NCCL_NET_GDR_LEVEL must allow it{far}"
    )


def _mixed_networks(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    names = network_names(facts)
    if len(names) < 2:
        return
    counts = ", ".join(f"{name} {number}" for name, number in names.items())
    yield TransportFinding(
        id="nccl_mixed_networks",
        severity="warning",
        message=f"several networks carry NCCL's data between nodes: {counts}",
        advice="the nodes differ in adapters, container or plug-in; NCCL_NET selects one",
        evidence=tuple(
            place for kind in facts.between_nodes if (place := facts.first.get(kind)) is not None
        )[:4],
    )


def _plugin(facts: Transport, promised: Network) -> Iterator[TransportFinding]:
    wanted = _PLUGINS.get(promised.fabric) if promised.fabric else None
    if wanted is None or not facts.plugin_missing or facts.nodes == 1:
        return
    yield TransportFinding(
        id="nccl_plugin_missing",
        severity="error",
        message=f"NCCL finds no network plug-in, and {promised.fabric} needs {wanted}",
        advice="wrong container or LD_LIBRARY_PATH: add the folder with libnccl-net.so to it",
        evidence=facts.places("plugin missing"),
    )


def _provider(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    if facts.provider.startswith(_TCP):
        yield TransportFinding(
            id="nccl_ofi_tcp",
            severity="error",
            message=f"libfabric's provider is {facts.provider}: TCP, not the fast network",
            advice="FI_PROVIDER=efa or cxi, and a libfabric that was built with it",
            evidence=facts.places("provider"),
        )


def _unexpected(facts: Transport, promised: Network) -> Iterator[TransportFinding]:
    wanted = _NAMES.get(promised.fabric) if promised.fabric else None
    if wanted is None:
        return
    others = [n for n in network_names(facts) if not n.lower().startswith((*wanted, "socket"))]
    others = [name for name in others if name != "MNNVL"]
    if others:
        yield TransportFinding(
            id="nccl_unexpected_network",
            severity="warning",
            message=f"NCCL uses {', '.join(others)}; the profile promises {promised.fabric}",
            advice="correct network.fabric of the profile, or the plug-in that the job loads",
            evidence=facts.places("network", "plugin"),
        )


def _direct(kind: str) -> bool:
    return kind.startswith("NET/") and not kind.startswith(SOCKET)


_RULES: tuple[TransportRule, ...] = (
    _sockets, _plugin, _provider, _no_gdr, _some_gdr, _mixed_networks, _unexpected, link_layers,
    link_speeds, p2p_disabled,
)  # fmt: skip
