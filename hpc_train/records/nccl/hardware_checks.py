"""Checks of the hardware that NCCL reports: equal adapters, direct access between GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.site_network import Network
from hpc_train.model.transport import Adapter, Transport, TransportFinding

_SHOWN = 12


def link_layers(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    """Find InfiniBand and Ethernet adapters used together."""
    layers = {adapter.link_layer for adapter in facts.adapters}
    if len(layers) < 2 or facts.nodes == 1:
        return
    listed = ", ".join(f"{a.name}/{a.link_layer}" for a in facts.adapters[:_SHOWN])
    yield TransportFinding(
        id="nccl_mixed_link_layers",
        severity="warning",
        message=f"NCCL uses adapters of different link layers together: {listed}",
        advice="name those of the fast network in NCCL_IB_HCA (network.hcas of the profile)",
        evidence=facts.places("adapter"),
    )


def link_speeds(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    """Find links of one layer with different speeds: collectives wait for the slowest."""
    if facts.nodes == 1:
        return
    for layer in sorted({adapter.link_layer for adapter in facts.adapters}):
        alike = [one for one in facts.adapters if one.link_layer == layer and one.gbps]
        if len({speed for one in alike for speed in one.gbps}) < 2:
            continue
        listed = ", ".join(map(_at, alike[:_SHOWN]))
        yield TransportFinding(
            id="nccl_mixed_link_speeds",
            severity="warning",
            message=f"adapters of one kind run at different speeds [Gbit/s]: {listed}",
            advice="a link that came up slow shows in `ibstat`, `ethtool` and at its cable; "
            "exclude the adapters of another network in NCCL_IB_HCA",
            evidence=facts.places("speed", "adapter"),
        )


def _at(adapter: Adapter) -> str:
    return f"{adapter.name} {'/'.join(f'{speed:g}' for speed in adapter.gbps)}"


def p2p_disabled(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    """Find channels through host memory between GPUs of one node."""
    shared = facts.channels.get("SHM", 0)
    direct = sum(n for kind, n in facts.channels.items() if kind.startswith("P2P/"))
    if not shared:
        return
    off = facts.environment.get("NCCL_P2P_DISABLE") == "1"
    some = f", {direct} do not" if direct else ""
    yield TransportFinding(
        id="nccl_p2p_disabled",
        # Between CPU sockets of a node with PCIe only, NCCL uses host memory by default.
        severity="warning" if off or facts.nvlink or not direct else "info",
        message=f"{shared} channels inside the nodes go through the host's memory (SHM){some}",
        advice="take NCCL_P2P_DISABLE=1 out of the environment"
        if off
        else "look at `nvidia-smi topo -p2p r`; ACS or an IOMMU that is on, and containers that do "
        "not share /proc and the devices, keep GPUs apart",
        evidence=facts.places("SHM"),
    )
