"""The topology of published machines, and of this one.

Sources of the facts, each as its tools printed it:
- dgx_a100: github.com/NVIDIA/nccl issue 1505 (GPUs on NUMA nodes 3, 1, 7, 5)
- dgx_h100: github.com/sgl-project/sglang issue 16771, github.com/vllm-project/vllm issue 6746
- mi250x: links github.com/vllm-project/vllm issue 16840, cores github.com/openmm/openmm issue 3940,
  NUMA nodes of the GPUs docs.lumi-supercomputer.eu, "Distribution and binding"
- distances of /sys: github.com/NVIDIA/nccl v2.4.8, src/graph/topo.cc, pciPathDistance
"""

from __future__ import annotations

import json

import pytest

from hpc_train.machine.read_hardware import read_hardware
from hpc_train.machine.read_topology import (
    distance,
    numa_nodes,
    nvidia_topology,
    pci_devices,
    rocm_topology,
)
from hpc_train.plans.node_topology import NodeTopology, nearest_nics
from tests.machine.machines import fixture, output

# A switch with two GPUs and an adapter, one behind a further switch, one beside, one elsewhere.
PCI = """\
/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:1b:00.0/class
/sys/devices/pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:00.0/0000:9d:00.0/class
/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:18:00.0/infiniband/mlx5_0
/sys/devices/pci0000:15/0000:15:01.0/0000:19:00.0/0000:1a:00.0/0000:1c:00.0/infiniband/mlx5_1
/sys/devices/pci0000:15/0000:15:02.0/0000:1d:00.0/infiniband/mlx5_2
/sys/devices/pci0000:26/0000:26:01.0/0000:27:00.0/infiniband/mlx5_3
/sys/devices/pci0000:a7/0000:a7:01.0/0000:a8:00.0/infiniband/mlx5_4
/sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0
/sys/devices/virtual/net/lo
"""
CORES = {"15": "0-3", "97": "4-7", "26": "0-3", "a7": "4-7", "00": "0-7"}
ROOTS = "".join(
    f"/sys/devices/pci0000:{bus}/pci_bus/0000:{bus}/cpulistaffinity:{cpus}\n"
    for bus, cpus in CORES.items()
)
NODE = "/sys/devices/system/node/node{}/cpulist:{}\n"
TWO = NODE.format(0, "0-3") + NODE.format(1, "4-7")


def topology(shape: str, **more: str) -> NodeTopology:
    return read_hardware(output(shape, **more)).topology


@pytest.mark.parametrize(("shape", "bonded"), [("dgx_a100", 12), ("dgx_h100", 18), ("gh200", 6)])
def test_all_pairs_of_a_machine_with_switches_have_the_same_link(shape: str, bonded: int) -> None:
    found = topology(shape)
    count = len(found.gpus)
    assert len(found.links) == count * (count - 1) // 2
    assert {(link.kind, link.count, link.label, link.direct) for link in found.links} == {
        ("NVLink", bonded, f"NV{bonded}", True)
    }


def test_a_dgx_h100() -> None:
    found = topology(
        "dgx_h100",
        numa=NODE.format(0, "0-55,112-167") + NODE.format(1, "56-111,168-223"),
        sockets="# Node,Socket\n0,0\n0,0\n1,1\n",
    )
    assert [place.numa for place in found.gpus] == [0] * 4 + [1] * 4
    nearest = [nearest_nics(place) for place in found.gpus]
    assert nearest == [(f"mlx5_{number}",) for number in (0, 3, 4, 5, 6, 9, 10, 11)]
    assert [nic.name for nic in found.nics] == [f"mlx5_{number}" for number in range(12)]
    assert [(node.number, node.socket) for node in found.numa] == [(0, 0), (1, 1)]
    assert found.gpus[4].cpus == "56-111,168-223"
    assert found.gpu_model == "NVIDIA H100 80GB HBM3"


def test_a_dgx_a100_has_its_gpus_beside_four_of_its_numa_nodes() -> None:
    found = topology("dgx_a100")
    assert [place.gpu for place in found.in_order()] == [2, 3, 0, 1, 6, 7, 4, 5]
    assert [node.cpus for node in found.numa][3] == "48-63,176-191"
    assert [place.numa for place in found.gpus] == [3, 3, 1, 1, 7, 7, 5, 5]


def test_the_links_of_a_frontier_node() -> None:
    links = {link.gpus: link for link in rocm_topology(fixture("mi250x.rocm")).links}
    assert len(links) == 28
    direct = {pair for pair, link in links.items() if link.direct}
    halves = {(0, 1), (2, 3), (4, 5), (6, 7)}
    assert direct == halves | {(0, 2), (0, 6), (1, 3), (1, 5), (2, 4), (3, 7), (4, 6), (5, 7)}
    assert [links[pair].label for pair in ((0, 1), (0, 3), (1, 7))] == ["XGMI", "XGMI2", "XGMI3"]


def test_amd_gpus_without_infinity_fabric() -> None:
    between = {(0, 1): 2, (0, 2): 3, (1, 2): 3}
    said = {f"Hops between DRM devices {a} and {b}": str(n) for (a, b), n in between.items()}
    said |= {f"Link type between DRM devices {a} and {b}": "PCIE" for a, b in between}
    text = json.dumps({"system": {f"(Topology) {key}": value for key, value in said.items()}})
    found = {link.gpus: link.kind for link in rocm_topology(text).links}
    assert found == {(0, 1): "NODE", (0, 2): "SYS", (1, 2): "SYS"}


def test_gpus_of_one_socket_and_of_two() -> None:
    found = topology("ls6")
    assert {link.gpus: link.label for link in found.links} == {
        (0, 1): "SYS", (0, 2): "SYS", (1, 2): "NODE",
    }  # fmt: skip
    assert not any(link.direct for link in found.links)


def test_a_matrix_that_is_cut_off() -> None:
    text = fixture("dgx_h100.topology")
    lines = text.splitlines()
    found = nvidia_topology("\n".join((*lines[:3], lines[3][:40])))
    assert [place.gpu for place in found.places] == [0, 1]
    assert nvidia_topology("No devices were found\n").places == ()


def test_distances_in_sys() -> None:
    devices = {one.name: one for one in pci_devices(PCI, ROOTS, numa_nodes(TWO))}
    gpu = devices["0000:1b:00.0"]
    found = {name: distance(gpu, one) for name, one in devices.items() if one.kind == "infiniband"}
    expected = {
        "mlx5_0": "PIX",
        "mlx5_1": "PXB",
        "mlx5_2": "PHB",
        "mlx5_3": "NODE",
        "mlx5_4": "SYS",
    }
    assert found == expected
    assert {distance(devices[name], gpu): name for name in expected} == {
        level: name for name, level in expected.items()
    }
    assert devices["eth0"].path == ("pci0000:00", "0000:00:03.0")
    assert (devices["eth0"].numa, "lo" in devices) == (None, False)


def test_sys_says_what_the_tool_of_the_gpus_does_not() -> None:
    gpus = "index, name, pci.bus_id\n0, X, 00000000:1B:00.0\n1, X, 00000000:9D:00.0\n"
    found = topology(
        "dgx_h100", nvidia=gpus, nvidia_topology="", pci=PCI, pci_roots=ROOTS, numa=TWO
    )
    assert [place.numa for place in found.gpus] == [0, 1]
    assert [nearest_nics(place) for place in found.gpus] == [("mlx5_0",), ("mlx5_4",)]
    assert [(nic.name, nic.numa) for nic in found.nics][3:] == [("mlx5_3", 0), ("mlx5_4", 1)]


def test_amd_gpus_and_the_interfaces_of_slingshot() -> None:
    root = "/sys/devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0"
    pci = f"{root}/0000:c2:01.0/0000:c5:00.0/net/hsn0\n{root}/0000:c2:00.0/0000:c9:00.0/class\n"
    cards = json.loads(fixture("mi250x.rocm").splitlines()[1])
    cards["card0"]["PCI Bus"] = "0000:C9:00.0"
    found = topology("mi250x", pci=pci, rocm=json.dumps(cards))
    assert found.gpus[0].nics == (("hsn0", "PIX"),)
    assert found.gpus[1].nics == ()
