"""The topology of published machines, as text and as a drawing."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from hpc_train.model.node_topology import GpuLink, GpuPlace, Nic, NodeTopology, NumaNode
from hpc_train.probe.hardware import read_hardware
from hpc_train.reports.topology_drawing import topology_svg
from hpc_train.reports.topology_text import topology_lines
from tests.probe.machines import output

SHAPES = ("dgx_a100", "dgx_h100", "gh200", "mi250x", "ls6")
SVG = "{http://www.w3.org/2000/svg}"


def topology(shape: str) -> NodeTopology:
    return read_hardware(output(shape)).topology


def elements(found: NodeTopology, tag: str) -> list[ElementTree.Element]:
    return list(root_of(found).iter(f"{SVG}{tag}"))


def root_of(found: NodeTopology) -> ElementTree.Element:
    return ElementTree.fromstring(topology_svg(found))  # noqa: S314, our own text


def texts(found: NodeTopology) -> list[str]:
    return [one.text or "" for one in elements(found, "text")]


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
    assert "<svg" in topology_svg(NodeTopology())


@pytest.mark.parametrize("shape", SHAPES)
def test_every_gpu_adapter_and_numa_node_is_drawn_once_and_inside(shape: str) -> None:
    found = topology(shape)
    words = texts(found)
    for place in found.gpus:
        assert words.count(f"GPU {place.gpu}") == 1
    for nic in found.nics:
        assert words.count(nic.name) == 1
    root = root_of(found)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in elements(found, "rect"):
        x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x < x + w <= width
        assert 0 <= y < y + h <= height


@pytest.mark.parametrize("shape", SHAPES)
def test_boxes_of_one_kind_do_not_overlap(shape: str) -> None:
    for kind in ("gpu", "nic", "numa"):
        boxes = sorted(
            (float(box.attrib["x"]), float(box.attrib["x"]) + float(box.attrib["width"]))
            for box in elements(topology(shape), "rect")
            if box.attrib["class"] == kind
        )
        for (_, end), (start, _) in pairwise(boxes):
            assert end <= start


def test_equal_links_are_one_bar_and_others_are_curves() -> None:
    bars = [one for one in elements(topology("dgx_h100"), "rect") if one.attrib["class"] == "bar"]
    assert len(bars) == 1
    assert "NV18 between all pairs: 18 NVLinks" in texts(topology("dgx_h100"))
    curves = [one.attrib["d"] for one in elements(topology("mi250x"), "path")]
    assert len([one for one in curves if re.fullmatch(r"M\d+ \d+C.*", one)]) == 12


def test_each_gpu_has_a_line_to_its_nearest_adapter_unless_that_is_in_another_node() -> None:
    lines = [one for one in elements(topology("dgx_h100"), "path") if "path" in one.attrib["class"]]
    assert len(lines) == 8
    only = [one for one in elements(topology("ls6"), "path") if "path" in one.attrib["class"]]
    assert len(only) == 1


def test_hostile_names_are_text() -> None:
    found = NodeTopology(
        host="<script>&", numa=(NumaNode(number=0, cpus="0"),), nics=(Nic(name="</svg>", numa=0),)
    )
    assert "</svg>" in texts(found)
    assert texts(found)[0].startswith("<script>&: no GPU")
