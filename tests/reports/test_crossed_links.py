"""The links that a collective over all GPUs of each size of advice crosses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hpc_train.advice.machine import MachineSize
from hpc_train.machine.read_hardware import read_hardware
from hpc_train.plans.node_topology import GpuLink, GpuPlace, NodeTopology
from hpc_train.reports.advice_report import crossed_links_tables
from hpc_train.reports.topology_text import topology_lines
from tests.machine.machines import output

# JUWELS Booster: four A100 with NVLink3, four adapters of 200 Gbit/s.
NODE = MachineSize(
    site="s", partition="p", gpus_per_node=4, gpu="A100", gpu_link=300.0, node_link=100.0
)


def rows(ranks: list[int], machine: MachineSize) -> list[list[str]]:
    return [
        [cell.text for cell in row]
        for table in crossed_links_tables(ranks, machine)
        for row in table.rows
    ]


def test_a_node_and_several() -> None:
    assert rows([8, 1, 2, 4, 4, 16], NODE) == [
        ["2 to 4", "from GPU to GPU in a node", "300", "each A100"],
        ["8 to 16", "the adapters between nodes", "25.0", "100 of a node, for 4 GPUs"],
    ]


def test_adapters_that_are_not_stated() -> None:
    unknown = replace(NODE, node_link=None)
    assert rows([128], unknown)[0][3].startswith("not known: state nics_per_node")


SHAPES = ("dgx_a100", "dgx_h100", "gh200", "mi250x", "ls6")


def topology(shape: str) -> NodeTopology:
    return read_hardware(output(shape)).topology


@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_is_wider_than_a_terminal(shape: str) -> None:
    lines = list(topology_lines(topology(shape)))
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]


def test_the_ranks_of_a_dgx_a100_are_those_of_its_cores() -> None:
    lines = list(topology_lines(topology("dgx_a100")))
    assert lines[0] == "node1: 8 x NVIDIA A100-SXM4-40GB, 8 NUMA nodes, 10 network adapters"
    assert "  2     0    3     48-63,176-191    mlx5_0, mlx5_1 (PXB)" in lines
    assert "  all pairs of GPUs: NV12" in lines
    assert "  PXB     several PCIe bridges, no host bridge" in lines


def test_links_that_differ_are_a_matrix() -> None:
    lines = list(topology_lines(topology("mi250x")))
    assert "  1    XGMI   -      XGMI2  XGMI   XGMI2  XGMI   XGMI2  XGMI3" in lines
    assert "  XGMI3   Infinity Fabric, 3 hops" in lines


def test_sixteen_gpus_are_listed_by_link_and_wrapped() -> None:
    places = tuple(GpuPlace(gpu=number, numa=number // 8) for number in range(16))
    pairs = [(a, b) for a in range(16) for b in range(a + 1, 16)]
    links = tuple(
        GpuLink(gpus=pair, kind="PIX" if pair[0] // 8 == pair[1] // 8 else "SYS") for pair in pairs
    )
    found = NodeTopology(host="n", gpu_model="X", gpus=places, links=links)
    lines = list(topology_lines(found))
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith("  PIX: 0-1, 0-2")]


def test_a_machine_of_which_nothing_is_known() -> None:
    assert list(topology_lines(NodeTopology())) == ["this machine: no GPU was found"]
