"""The cores of a binding, and the ranks that are far from their GPU or from one another."""

from __future__ import annotations

import pytest

from hpc_train.model.core_binding import bound_cores, far_ranks
from hpc_train.model.partition import Partition

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
