"""Nodes of another topology are named, with their runs; equal nodes are not."""

from __future__ import annotations

from hpc_train.model.node_topology import GpuLink, GpuPlace, Nic, NodeTopology
from hpc_train.model.report import Report
from hpc_train.reports.topology_caveats import topology_differences, with_topology_caveats

EMPTY = Report(title="t", summary=("first",), tables=(), notes=())


def node(host: str, link: str = "NV4", nics: int = 1) -> NodeTopology:
    places = tuple(GpuPlace(gpu=number) for number in range(2))
    return NodeTopology(
        host=host,
        gpus=places,
        links=(GpuLink(gpus=(0, 1), kind=link),),
        nics=tuple(Nic(name=f"mlx5_{number}") for number in range(nics)),
    )


def test_the_node_that_differs_is_named_with_its_runs() -> None:
    runs = {
        "1-r1": [node("n1")],
        "2-r1": [node("n1"), node("n2")],
        "2-r2": [node("n2"), node("n3", "SYS")],
    }
    found = with_topology_caveats(EMPTY, runs).summary
    assert found == (
        "Caveats: the runs had nodes of different topology: links between GPUs (2 GPUs): "
        "1 x NV4 on 2 nodes, 1 x SYS on n3 (2-r2).",
        "first",
    )


def test_many_nodes_are_counted() -> None:
    runs = {"a": [node("n0")] * 20, "b": [node(f"m{n}", nics=2) for n in range(11)]}
    (caveat, _) = with_topology_caveats(EMPTY, runs).summary
    assert caveat.endswith("1 on 1 node, 2 on m0, m1, m2, m3, m4, m5, m6, m7 and 3 more (b).")


def test_equal_nodes_or_none_are_not_mentioned() -> None:
    assert with_topology_caveats(EMPTY, {}) is EMPTY
    assert with_topology_caveats(EMPTY, {"a": [node("n1")], "b": [node("n2")]}) is EMPTY


def test_two_sides_that_differ() -> None:
    a, b = {"a": [node("n1")]}, {"b": [node("n1"), node("n2", "SYS", nics=2)]}
    assert topology_differences(a, b) == (
        ("topology: network adapters", "1", "1 / 2"),
        ("topology: links between GPUs (2 GPUs)", "1 x NV4", "1 x NV4 / 1 x SYS"),
    )
    assert topology_differences(a, a) == topology_differences(a, {}) == ()
