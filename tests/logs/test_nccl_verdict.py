"""What NCCL used -> a word, and findings where it is slow or not what the profile promises."""

from typing import Any

import pytest

from hpc_train.nccl.transport import verdict
from hpc_train.runs.conditions import Adapter, Transport
from hpc_train.sites.partition import Network


def two_nodes(*kinds: str, **more: Any) -> Transport:
    given = {"channels": dict.fromkeys(kinds, 8), "nodes": 2, **more}
    between = {kind: 8 for kind in kinds if kind.startswith("NET/")}
    return Transport(**{"between_nodes": between, **given})


def ids(facts: Transport, fabric: Any = None) -> list[str]:
    return [finding.id for finding in verdict(facts, Network(fabric=fabric)).findings]


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (two_nodes("NET/IB/GDRDMA", "P2P/CUMEM"), "IB+GDR"),
        (two_nodes("NET/IBext_v8/GDRDMA"), "IB+GDR"),
        (two_nodes("NET/IB"), "IB, no GDR"),
        (
            two_nodes("NET/IB/GDRDMA", adapters=(Adapter(name="m:1", link_layer="RoCE"),)),
            "RoCE+GDR",
        ),
        (two_nodes("NET/Socket", "P2P/IPC"), "sockets"),
        (two_nodes("NET/IB/GDRDMA", "NET/IB"), "mixed"),
        (two_nodes("NET/IB/GDRDMA", "NET/Socket"), "mixed"),
        (two_nodes("NET/AWS Libfabric/GDRDMA", provider="cxi"), "Slingshot+GDR"),
        (two_nodes("NET/Libfabric/GDRDMA", provider="efa"), "EFA+GDR"),
        (two_nodes("NET/AWS Libfabric", provider="tcp;ofi_rxm"), "OFI tcp, no GDR"),
        (two_nodes("P2P/MNNVL", between_nodes={"P2P/MNNVL": 8}), "NVLink"),
        (two_nodes(between_nodes={"NET/IB/GDRDMA": 8, "P2P/MNNVL": 8}), "IB+GDR"),
        (Transport(nodes=1, channels={"P2P/CUMEM": 8}, nvlink=True), "NVLink"),
        (Transport(nodes=1, channels={"P2P/IPC": 8}, nvlink=True, rccl=True), "xGMI"),
        (Transport(nodes=1, channels={"P2P/IPC": 8}), "P2P"),
        (Transport(nodes=1, channels={"SHM": 8}), "SHM"),
        (Transport(nodes=1, channels={"SHM": 8, "P2P/IPC": 8}), "P2P+SHM"),
        (Transport(nodes=2, using_network={"Socket": 4}), "sockets"),
        (Transport(nodes=2, using_network={"IB": 4}), "IB"),
        (Transport(nccl_version=("2.20.5+cuda12.4",)), ""),
    ],
)
def test_word(facts: Transport, word: str) -> None:
    assert verdict(facts).verdict == word


def test_one_node_needs_no_network() -> None:
    facts = Transport(nodes=1, channels={"P2P/CUMEM": 192}, using_network={"Socket": 8})
    assert ids(facts, "infiniband") == []


def test_sockets_between_nodes() -> None:
    facts = two_nodes("NET/Socket", first={"NET/Socket": "job.out:7"}, interfaces=("eth0",))
    (alone,) = verdict(facts).findings
    assert (alone.id, alone.severity) == ("nccl_socket_transport", "warning")
    assert alone.evidence == ("job.out:7",)
    (promised,) = verdict(facts, Network(fabric="infiniband")).findings
    assert promised.severity == "error"
    assert "eth0" in promised.message
    assert "infiniband" in promised.message
    assert ids(facts, "ethernet") == []


def test_sockets_that_somebody_asked_for() -> None:
    facts = two_nodes("NET/Socket", environment={"NCCL_IB_DISABLE": "1"})
    assert "NCCL_IB_DISABLE=1" in verdict(facts).findings[0].advice


@pytest.mark.parametrize("fabric", ["slingshot", "efa", "gcp-tcpxo"])
def test_plugin_missing(fabric: str) -> None:
    facts = two_nodes("NET/Socket", plugin_missing=True)
    assert ids(facts, fabric) == ["nccl_socket_transport", "nccl_plugin_missing"]
    assert ids(facts, "infiniband") == ["nccl_socket_transport"]


def test_without_gpudirect() -> None:
    assert ids(two_nodes("NET/IB")) == ["nccl_no_gpudirect"]
    off = two_nodes("NET/IB", environment={"NCCL_NET_GDR_LEVEL": "LOC"})
    assert "LOC" in verdict(off).findings[0].advice
    far = two_nodes("NET/IB", first={"gdr far": "a:1"})
    assert "farther" in verdict(far).findings[0].advice


def test_some_without_gpudirect() -> None:
    facts = two_nodes("NET/IB/GDRDMA", "NET/IB", without_gdr=("h2:NET/IB/4",))
    (finding,) = verdict(facts).findings
    assert (finding.id, finding.severity) == ("nccl_mixed_gpudirect", "warning")
    assert "h2:NET/IB/4" in finding.message
    only = two_nodes("NET/IB/GDRDMA", "NET/IB", gdr_only_received=True)
    assert verdict(only).findings[0].severity == "info"


def test_provider_tcp() -> None:
    facts = two_nodes("NET/AWS Libfabric/GDRDMA", provider="tcp;ofi_rxm")
    assert ids(facts) == ["nccl_ofi_tcp"]


def test_another_network_than_promised() -> None:
    assert ids(two_nodes("NET/IB/GDRDMA"), "slingshot") == ["nccl_unexpected_network"]
    assert ids(two_nodes("NET/AWS Libfabric/GDRDMA"), "slingshot") == []
    assert ids(two_nodes("NET/IBext_v8/GDRDMA"), "infiniband") == []


def test_gpus_that_do_not_reach_one_another() -> None:
    alone = Transport(nodes=1, channels={"SHM": 4})
    assert ids(alone) == ["nccl_p2p_disabled"]
    pcie = Transport(nodes=1, channels={"SHM": 4, "P2P/IPC": 4})
    assert verdict(pcie).findings[0].severity == "info"
    off = Transport(nodes=1, channels={"SHM": 4}, environment={"NCCL_P2P_DISABLE": "1"})
    assert "NCCL_P2P_DISABLE=1" in verdict(off).findings[0].advice
