"""Nodes have equal traits if they are built alike, whatever the names of their devices."""

from __future__ import annotations

import msgspec

from hpc_train.model.node_topology import GpuLink, GpuPlace, Nic, NodeTopology, NumaNode
from hpc_train.model.topology_traits import topology_traits

NODE = NodeTopology(
    host="n1",
    gpu_model="A100",
    numa=(NumaNode(number=0, cpus="0-7", socket=0), NumaNode(number=1, cpus="8-15", socket=1)),
    gpus=(
        GpuPlace(gpu=0, numa=0, nics=(("mlx5_0", "PIX"), ("mlx5_1", "SYS"))),
        GpuPlace(gpu=1, numa=1, nics=(("mlx5_0", "SYS"), ("mlx5_1", "PIX"))),
    ),
    nics=(Nic(name="mlx5_0", numa=0), Nic(name="mlx5_1", numa=1)),
    links=(GpuLink(gpus=(0, 1), kind="NVLink", count=4),),
)


def changed(**fields: object) -> set[str]:
    """Return the traits in which a changed node differs."""
    one, other = topology_traits(NODE), topology_traits(msgspec.structs.replace(NODE, **fields))
    assert one
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def test_the_traits_of_a_node() -> None:
    assert dict(topology_traits(NODE)) == {
        "GPU": "A100",
        "NUMA nodes": "2 of 8 CPUs on 2 sockets",
        "network adapters": "2",
        "links between GPUs (2 GPUs)": "1 x NV4",
        "GPUs of a NUMA node (2 GPUs)": "1 + 1",
        "nearest adapters of the GPUs (2 GPUs)": "2 x PIX",
    }


def test_names_and_numbers_do_not_matter() -> None:
    first, second = NODE.gpus
    swapped = (
        GpuPlace(gpu=0, numa=1, nics=(("rdma0", "PIX"),)),
        GpuPlace(gpu=1, numa=0, nics=(("rdma1", "PIX"),)),
    )
    assert first != second
    nics = (Nic(name="rdma0"), Nic(name="rdma1"))
    assert changed(host="n2", gpus=swapped, nics=nics) == set()


def test_what_makes_nodes_differ() -> None:
    slow = GpuLink(gpus=(0, 1), kind="SYS")
    assert changed(links=(slow,)) == {"links between GPUs (2 GPUs)"}
    assert changed(nics=NODE.nics[:1]) == {"network adapters"}
    assert changed(gpu_model="H100") == {"GPU"}
    assert changed(numa=(NumaNode(number=0, cpus="0-15", socket=0),)) == {"NUMA nodes"}
    near = (msgspec.structs.replace(NODE.gpus[0], nics=(("mlx5_0", "PHB"),)), NODE.gpus[1])
    assert changed(gpus=near) == {"nearest adapters of the GPUs (2 GPUs)"}


def test_a_job_with_one_of_the_gpus_shares_no_trait_of_them() -> None:
    part = msgspec.structs.replace(NODE, gpus=NODE.gpus[:1], links=())
    shared = topology_traits(NODE).keys() & topology_traits(part).keys()
    assert shared == {"GPU", "NUMA nodes", "network adapters"}


def test_a_machine_that_says_nothing_has_no_trait() -> None:
    assert not topology_traits(NodeTopology(host="n1"))
