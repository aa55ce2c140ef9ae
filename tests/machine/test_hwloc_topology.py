"""XML of hwloc, in the words of `lstopo --of xml` of versions 1.11 and 2."""

from __future__ import annotations

import pytest

from hpc_train.machine.read_hardware import read_hardware
from hpc_train.machine.read_topology import HwlocTopology, distance, hwloc_topology
from hpc_train.plans.node_topology import nearest_nics
from tests.machine.machines import fixture, output


def test_a_node_with_two_gpus_and_two_adapters() -> None:
    found = hwloc_topology(fixture("hwloc.topology"))
    assert [(one.number, one.cpus, one.socket) for one in found.numa] == [
        (0, "0-7,32-39", 0),
        (1, "24-31,56-63", 1),
    ]
    assert [(gpu.index, gpu.name, gpu.bus) for gpu in found.gpus] == [
        (0, "NVIDIA A100-SXM4-80GB", "0000:87:00.0"),
        (1, "NVIDIA A100-SXM4-80GB", "0000:07:00.0"),
    ]
    devices = {one.name: one for one in found.devices}
    assert {name: (one.kind, one.numa) for name, one in devices.items()} == {
        "0000:07:00.0": ("gpu", 0),
        "0000:87:00.0": ("gpu", 1),
        "ib0": ("net", 0),
        "mlx5_0": ("infiniband", 0),
        "mlx5_1": ("infiniband", 1),
    }
    gpu = devices["0000:07:00.0"]
    assert [distance(gpu, devices[f"mlx5_{number}"]) for number in (0, 1)] == ["PIX", "SYS"]


def test_it_says_what_no_other_tool_says() -> None:
    quiet = {"nvidia": "", "nvidia_topology": "", "cpus": ""}
    found = read_hardware(output("none", hwloc=fixture("hwloc.topology"), **quiet)).topology
    assert [(place.gpu, place.numa, nearest_nics(place)) for place in found.gpus] == [
        (0, 1, ("mlx5_1",)),
        (1, 0, ("mlx5_0",)),
    ]
    assert found.gpu_model == "NVIDIA A100-SXM4-80GB"
    # A firmware that names no NUMA node, which the kernel shows as all cores.
    root = "/sys/devices/pci0000:80"
    numa = "".join(
        f"/sys/devices/system/node/node{number}/cpulist:{cpus}\n"
        for number, cpus in enumerate(("0-7,32-39", "24-31,56-63"))
    )
    silent = {
        "numa": numa,
        "pci": f"{root}/0000:8b:00.0/infiniband/mlx5_1\n",
        "pci_roots": f"{root}/pci_bus/0000:80/cpulistaffinity:0-63\n",
    }
    found = read_hardware(output("none", hwloc=fixture("hwloc.topology"), **silent)).topology
    assert [(nic.name, nic.numa) for nic in found.nics] == [("mlx5_1", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<topology",
        "lstopo: invalid option",
        '<!DOCTYPE t [<!ENTITY a "b">]><topology></topology>',
        '<topology><object type="NUMANode" os_index="x" cpuset="0xf...f"/></topology>',
        '<topology><object type="OSDev" osdev_type="3" name="mlx5_0"/></topology>',
    ],
)
def test_what_is_no_topology_says_nothing(text: str) -> None:
    assert hwloc_topology(text) == HwlocTopology()
