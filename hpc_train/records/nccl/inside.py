"""Facts -> whether the GPUs of a node reach one another directly."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.network import Network
from hpc_train.model.transport import Transport, TransportFinding


def p2p_disabled(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    """Find channels that go through the host's memory though both GPUs are in one node."""
    shared = facts.channels.get("SHM", 0)
    direct = sum(n for kind, n in facts.channels.items() if kind.startswith("P2P/"))
    if not shared:
        return
    off = facts.environment.get("NCCL_P2P_DISABLE") == "1"
    some = f", {direct} do not" if direct else ""
    yield TransportFinding(
        id="nccl_p2p_disabled",
        # Between the sockets of a node with PCIe alone, NCCL takes this way of itself.
        severity="warning" if off or facts.nvlink or not direct else "info",
        message=f"{shared} channels inside the nodes go through the host's memory (SHM){some}",
        advice="take NCCL_P2P_DISABLE=1 out of the environment"
        if off
        else "look at `nvidia-smi topo -p2p r`; ACS or an IOMMU that is on, and containers that do "
        "not share /proc and the devices, keep GPUs apart",
        evidence=facts.places("SHM"),
    )
