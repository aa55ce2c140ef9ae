"""XML of hwloc, in the words of `lstopo --of xml` of versions 1.11 and 2."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from hpc_train.model.node_topology import cpu_list, nearest_nics
from hpc_train.probe.hardware import read_hardware
from hpc_train.probe.read_topology import HwlocTopology, distance, hwloc_topology
from tests.probe.machines import fixture, output

# Version 1.11: a node around its package, which is named Socket.
OLD = """<topology>
  <object type="Machine" os_index="0" cpuset="0x000000ff">
    <object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002">
      <object type="Socket" os_index="1" cpuset="0x000000f0"/>
    </object>
    <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001">
      <object type="Socket" os_index="0" cpuset="0x0000000f"/>
    </object>
  </object>
</topology>
"""


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


def test_version_1_has_nodes_around_packages() -> None:
    numa = hwloc_topology(OLD).numa
    assert [(one.number, one.cpus, one.socket) for one in numa] == [(0, "0-3", 0), (1, "4-7", 1)]


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


@pytest.mark.parametrize(("pci_class", "count"), [("0300", 1), ("1200", 1), ("0200", 0)])
def test_displays_and_accelerators_are_gpus(pci_class: str, count: int) -> None:
    device = f'<object type="PCIDev" pci_busid="0000:41:00.0" pci_type="{pci_class} [1002:740c]"/>'
    found = hwloc_topology(f"<topology>{device}</topology>").devices
    assert [one.kind for one in found] == ["gpu"] * count


def test_objects_deeper_than_python_calls_functions() -> None:
    deep = sys.getrecursionlimit() + 10
    text = f"<topology>{'<object>' * deep}{'</object>' * deep}</topology>"
    assert hwloc_topology(text) == HwlocTopology()


def test_lists_of_cores() -> None:
    assert cpu_list((3, 0, 1, 8, 2)) == "0-3,8"
    assert cpu_list(()) == ""


def test_the_program_of_this_machine() -> None:
    if shutil.which("lstopo-no-graphics") is None:
        pytest.skip("hwloc is not installed")
    command = ["lstopo-no-graphics", "-i", "pack:2 numa:2 core:2 pu:2", "--of", "xml"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = hwloc_topology(text)
    assert [(one.socket, one.cpus) for one in found.numa] == [
        (0, "0-3"), (0, "4-7"), (1, "8-11"), (1, "12-15"),
    ]  # fmt: skip
