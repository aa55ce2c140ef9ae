"""The topology of published machines, and of this one.

Sources of the facts, each as its tools printed it:
- dgx_a100: github.com/NVIDIA/nccl issue 1505 (GPUs on NUMA nodes 3, 1, 7, 5)
- dgx_h100: github.com/sgl-project/sglang issue 16771, github.com/vllm-project/vllm issue 6746
- mi250x: links github.com/vllm-project/vllm issue 16840, cores github.com/openmm/openmm issue 3940,
  NUMA nodes of the GPUs docs.lumi-supercomputer.eu, "Distribution and binding"
"""

from __future__ import annotations

import pytest

from hpc_train.machine.read_hardware import read_hardware
from hpc_train.machine.read_topology import nvidia_topology, rocm_topology
from hpc_train.plans.binding import NodeTopology, nearest_nics
from tests.machine.machines import fixture, output

NODE = "/sys/devices/system/node/node{}/cpulist:{}\n"


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


def test_the_links_of_a_frontier_node() -> None:
    links = {link.gpus: link for link in rocm_topology(fixture("mi250x.rocm")).links}
    assert len(links) == 28
    direct = {pair for pair, link in links.items() if link.direct}
    halves = {(0, 1), (2, 3), (4, 5), (6, 7)}
    assert direct == halves | {(0, 2), (0, 6), (1, 3), (1, 5), (2, 4), (3, 7), (4, 6), (5, 7)}
    assert [links[pair].label for pair in ((0, 1), (0, 3), (1, 7))] == ["XGMI", "XGMI2", "XGMI3"]


def test_a_matrix_that_is_cut_off() -> None:
    text = fixture("dgx_h100.topology")
    lines = text.splitlines()
    found = nvidia_topology("\n".join((*lines[:3], lines[3][:40])))
    assert [place.gpu for place in found.places] == [0, 1]
    assert nvidia_topology("No devices were found\n").places == ()
