"""Transport -> a short label for a column of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpc_train.model.transport import Transport

SOCKET = "NET/Socket"
GDR = "/GDRDMA"
MIXED = "mixed"
_PROVIDERS = {"efa": "EFA", "cxi": "Slingshot", "tcp": "OFI tcp", "sockets": "OFI tcp"}


def word_of(facts: Transport) -> str:
    """Return `IB+GDR`, `IB, no GDR`, `RoCE+GDR`, `EFA+GDR`, `sockets`, `NVLink`, `P2P`, `SHM` …

    Between nodes, the label is that of the network alone. `P2P` is GPU to GPU over an unknown link.
    `mixed` is more than one transport. The label is empty if no line contains the transport.
    """
    if facts.between_nodes:
        # NVLink connects some of the nodes, the network the others.
        networks = [kind for kind in facts.between_nodes if kind.startswith("NET/")]
        return _only(_network_word(kind, facts) for kind in networks or facts.between_nodes)
    inside = {kind for kind, number in facts.channels.items() if number}
    if facts.nodes == 1 or (inside and not facts.using_network):
        return _inside(inside, facts)
    if facts.nodes and facts.nodes > 1:
        return _only(_network_word(f"NET/{name}", facts) for name in facts.using_network)
    return _inside(inside, facts)


def network_names(facts: Transport) -> Mapping[str, int]:
    """Return the networks between nodes, `IB`, `Socket`: by channels, else as selected."""
    counts: dict[str, int] = {}
    for kind, number in facts.between_nodes.items():
        name = kind.removesuffix(GDR).partition("/")[2]
        counts[name] = counts.get(name, 0) + number
    if counts or facts.nodes is None or facts.nodes < 2 or facts.channels:
        return counts
    return facts.using_network


def _only(words: Iterable[str]) -> str:
    different = list(dict.fromkeys(words))
    return different[0] if len(different) == 1 else MIXED if different else ""


def _network_word(kind: str, facts: Transport) -> str:
    if kind.startswith(SOCKET):
        return "sockets"
    if kind.startswith("P2P/"):
        return "NVLink"
    name = fabric_of(kind.removesuffix(GDR).removeprefix("NET/"), facts)
    if not facts.between_nodes:
        return name
    return f"{name}+GDR" if kind.endswith(GDR) else f"{name}, no GDR"


def fabric_of(name: str, facts: Transport) -> str:
    """Return the common name of a network of NCCL: `RoCE` for `IB` over Ethernet, `EFA`."""
    if name == "IB" or name.startswith(("IBext", "NCCL RDMA")):
        return "RoCE" if {a.link_layer for a in facts.adapters} == {"RoCE"} else "IB"
    if name.endswith("Libfabric") or name.startswith("OFI"):
        provider = facts.provider.partition(";")[0].partition("-")[0]
        return _PROVIDERS.get(provider, "OFI")
    return name


def _inside(kinds: set[str], facts: Transport) -> str:
    if not kinds:
        return ""
    if any(kind.startswith("P2P/") for kind in kinds):
        link = "xGMI" if facts.rccl else "NVLink"
        way = link if facts.nvlink else "P2P"
        return f"{way}+SHM" if "SHM" in kinds else way
    return "SHM" if kinds == {"SHM"} else _only(_network_word(kind, facts) for kind in kinds)
