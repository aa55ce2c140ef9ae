"""The output of `scontrol show topology` -> switches or blocks, and the ways between nodes.

Forms of the lines: trees of a real slurmctld 22.05; blocks of Slurm 24.05, src/api/topo_info.c."""

from __future__ import annotations

import pytest

from hpc_train.base.slurm_options import gres
from hpc_train.plans.binding import bound_cores, far_ranks
from hpc_train.runs.nccl_transport import Transport
from hpc_train.sites.partition import Partition
from hpc_train.slurm.live_cluster import SwitchTopology

TREE = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[01-02]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[03-05]
SwitchName=leaf3 Level=0 LinkSpeed=1 Nodes=n[06-07]
SwitchName=middle Level=1 LinkSpeed=1 Nodes=n[01-05] Switches=leaf[1-2]
SwitchName=spine Level=2 LinkSpeed=1 Nodes=n[01-07] Switches=middle,leaf3
"""
BLOCKS = """\
BlockName=b1 BlockIndex=0 Nodes=g[1-18] BlockSize=18
BlockName=b2 BlockIndex=1 Nodes=g[19-35] BlockSize=18
"""


def parsed(text: str) -> SwitchTopology:
    found = SwitchTopology.parse(text)
    assert found is not None
    return found


def test_blocks() -> None:
    blocks = parsed(BLOCKS)
    assert blocks.kind == "block"
    assert (blocks.most_nodes, blocks.summary) == (18, "2 blocks of 17 to 18 nodes")


def test_a_summary_counts_leaves() -> None:
    assert (parsed(TREE).most_nodes, parsed(TREE).summary) == (3, "3 leaf switches of 2 to 3 nodes")


@pytest.mark.parametrize(
    "text", ["", "No topology information available", "SwitchName=", "SwitchName=s Level=x Nodes=n"]
)
def test_a_cluster_without_a_topology(text: str) -> None:
    assert SwitchTopology.parse(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:a100:4(S:0-1)", [("gpu", "a100", 4)]),
        ("gpu:4", [("gpu", "", 4)]),
        ("gpu:1g.10gb:7,gpu:h100:3", [("gpu", "1g.10gb", 7), ("gpu", "h100", 3)]),
        ("craynetwork:4,nvme:1600G", [("craynetwork", "", 4)]),
        ("gpu:h200:8(S:0-1,3),tmpdisk:1024", [("gpu", "h200", 8), ("tmpdisk", "", 1024)]),
        ("(null)", []),
        ("", []),
        ("gpu:", []),
        ("gpu", [("gpu", "", 1)]),
        ("gpu:a100", [("gpu", "a100", 1)]),
        ("gres/gpu=2", [("gpu", "", 2)]),
        ("gpu:$N", []),
    ],
)
def test_gres(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert [(one.name, one.kind, one.count) for one in gres(text)] == expected


NODE = Partition(name="p", gpus_per_node=2, numa_cpus=("0-3,8-11", "4-7,12-15"), gpu_numa=(1, 0))


@pytest.mark.parametrize(
    ("word", "cores"),
    [
        ("mask_cpu:0xf,f0", [{0, 1, 2, 3}, {4, 5, 6, 7}]),
        ("verbose,map_cpu:0,12", [{0}, {12}]),
        ("list:0-1,8:4-5", [{0, 1, 8}, {4, 5}]),
        ("mask_ldom:0x2,0x3", [{4, 5, 6, 7, 12, 13, 14, 15}, {*range(16)}]),
        ("map_ldom:1,0", [{4, 5, 6, 7, 12, 13, 14, 15}, {0, 1, 2, 3, 8, 9, 10, 11}]),
        ("map_ldom:0,2", []),
        ("cores", []),
        ("none", []),
        ("mask_cpu:0x0,0xf", []),
        ("mask_cpu:$MASKS", []),
        ("map_cpu:", []),
    ],
)
def test_cores_of_a_binding(word: str, cores: list[set[int]]) -> None:
    assert list(map(set, bound_cores(word, NODE.numa_cpus))) == cores


def said(word: str, *gpus: int) -> list[str]:
    return list(far_ranks(bound_cores(word), NODE, gpus))


def test_cores_on_several_nodes_that_fit_on_one() -> None:
    (clause,) = said("list:2-5:8-11")
    assert clause == "the 4 cores of local rank 0 are on NUMA nodes 0 and 1"
    # Twelve cores fit on no node.
    assert said("list:0-11") == []


def test_cores_on_another_node_than_the_gpu() -> None:
    clauses = said("list:0-3:4-7", 0, 1)
    assert clauses[0] == "local rank 0 has cores of NUMA node 0, its GPU 0 is on 1"
    assert len(clauses) == 2
    assert said("list:0-3:4-7", 1, 0) == []
    assert said("list:0-3:4-7") == []


def test_places_are_those_of_the_kinds_that_were_seen_in_the_order_asked() -> None:
    facts = Transport(first={"network": "log:3", "plugin": "log:7", "speed": "log:9"})
    assert facts.places("plugin", "gdr refused", "network") == ("log:7", "log:3")
