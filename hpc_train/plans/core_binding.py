"""The cores that a binding gives to each local rank -> which of them are far from its others."""

import re
from collections.abc import Iterator, Sequence

from hpc_train.plans.node_topology import cpu_numbers
from hpc_train.sites.partition import Partition

_MASK = re.compile(r"\A(?:0[xX])?[0-9A-Fa-f]{1,256}\Z")
_KINDS = ("mask_cpu", "map_cpu", "mask_ldom", "map_ldom", "list")
_NUMBER = re.compile(r"\A[0-9]{1,6}\Z")


def bound_cores(word: str, numa_cpus: Sequence[str] = ()) -> tuple[frozenset[int], ...]:
    """Return the cores of each local rank of `mask_cpu:0xf,0xf0`, `map_cpu:0,8`, `list:0-7:8-15`.

    `mask_ldom:0x1,0x2` and `map_ldom:0,1` name NUMA nodes, whose cores are `numa_cpus`. Empty if
    the binding names no cores, or one of them cannot be read.
    """
    kind, _, text = word.rpartition("=")[2].removeprefix("verbose,").partition(":")
    if kind not in _KINDS or not text:
        return ()
    parts = [_numbers(kind, part.strip()) for part in text.split(":" if kind == "list" else ",")]
    if kind.endswith("_ldom"):
        nodes = dict(enumerate(map(cpu_numbers, numa_cpus)))
        parts = [frozenset(cpu for node in part for cpu in nodes.get(node, ())) for part in parts]
    return tuple(parts) if all(parts) else ()


def far_ranks(
    cores: Sequence[frozenset[int]], partition: Partition, gpus: Sequence[int] = ()
) -> Iterator[str]:
    """Yield a clause for each local rank whose binding crosses NUMA nodes without need.

    That is: its cores are on several and would fit on one, or none is on the node of its GPU.
    `gpus` are the GPUs of the local ranks, empty if each rank has not a known one of its own.
    """
    nodes = [frozenset(cpu_numbers(text)) for text in partition.numa_cpus]
    largest = max(map(len, nodes), default=0)
    places = (
        dict(enumerate(partition.gpu_numa))
        if len(gpus) == len(cores) == len(partition.gpu_numa)
        else {}
    )
    for rank, own in enumerate(cores):
        there = [number for number, node in enumerate(nodes) if own & node]
        if len(there) > 1 and len(own) <= largest:
            yield f"the {len(own)} cores of local rank {rank} are on NUMA nodes {_listed(there)}"
        elif there and places and places.get(gpus[rank], there[0]) not in there:
            there_too = f"its GPU {gpus[rank]} is on {places[gpus[rank]]}"
            yield f"local rank {rank} has cores of NUMA node {_listed(there)}, {there_too}"


def _numbers(kind: str, text: str) -> frozenset[int]:
    if kind.startswith("mask_"):
        bits = int(text, 16) if _MASK.match(text) else 0
        return frozenset(bit for bit in range(bits.bit_length()) if bits >> bit & 1)
    if kind.startswith("map_"):
        return frozenset((int(text),)) if _NUMBER.match(text) else frozenset()
    return frozenset(cpu_numbers(text))


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(map(str, numbers))
