"""Partitions and qualities of service of a draft: each limit is Slurm's, or is not stated."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from hpc_train.base.slurm_options import Gres
from hpc_train.base.values import Duration, Memory
from hpc_train.machine.draft_profile import partition_lines, qos_lines
from hpc_train.slurm.live_cluster import (
    Association,
    Bounds,
    Cluster,
    LiveNode,
    LivePartition,
    LiveQos,
)

NODE = LiveNode(
    name="n1", arch="x86_64", cpus=64, all_cpus=64, threads=1, memory=Memory(1000),
    gres=(Gres(name="gpu", kind="a100", count=4),), features=(), partitions=("p",), state="IDLE",
)  # fmt: skip
QUEUE = LivePartition(
    name="p", state="UP", default=False, nodes=8, min_nodes=None, max_nodes=None, max_time=None,
    default_time=None, shared=None, qos="", allowed_qos=(), allowed_accounts=(),
    preempt_mode="OFF", grace=None,
)  # fmt: skip
HOUR = Duration(3600)


def cluster(**fields: Any) -> Cluster:
    values = {"name": "c", "version": "24.05", "partitions": (QUEUE,), "nodes": (), **fields}
    return Cluster(**values)


def queue(select: str = "cons_tres", **fields: Any) -> list[str]:
    """Return the lines of a partition without nodes."""
    own = msgspec.structs.replace(QUEUE, **fields)
    live = cluster(partitions=(own,), limits=Bounds(select=select))
    return [one.strip() for one in partition_lines(live, {}, None)][2:]


def of_nodes(*nodes: LiveNode) -> list[str]:
    """Return the lines about the nodes of a partition."""
    found = [one.strip() for one in partition_lines(cluster(nodes=nodes), {}, None)]
    return found[found.index("# no time limit") + 1 :]


def node(**fields: Any) -> LiveNode:
    return msgspec.structs.replace(NODE, **fields)


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({}, ["nodes: 8", "max_nodes: 8", "# no time limit"]),
        ({"nodes": 0, "min_nodes": 2}, ["# no time limit"]),
        ({"max_nodes": 4}, ["nodes: 8", "max_nodes: 4", "# no time limit"]),
        ({"max_nodes": 0}, ["nodes: 8", "max_nodes: 8", "# no time limit"]),
        ({"min_nodes": 1}, ["nodes: 8", "max_nodes: 8", "# no time limit"]),
        ({"min_nodes": 2}, ["nodes: 8", "max_nodes: 8", "min_nodes: 2", "# no time limit"]),
        ({"min_nodes": 8}, ["nodes: 8", "max_nodes: 8", "min_nodes: 8", "# no time limit"]),
        ({"min_nodes": 9}, ["nodes: 8", "max_nodes: 8", "# no time limit"]),
    ],
)
def test_numbers_of_nodes_are_stated_if_a_job_can_have_them(
    fields: dict[str, Any], lines: list[str]
) -> None:
    assert queue(**fields) == lines


def test_a_default_time_beyond_the_limit_is_not_stated() -> None:
    assert queue(max_time=HOUR, default_time=HOUR)[2:] == ["max_time: 1h", "default_time: 1h"]
    assert queue(max_time=HOUR, default_time=Duration(3601))[2:] == ["max_time: 1h"]


@pytest.mark.parametrize(
    ("shared", "select", "lines"),
    [
        (False, "cons_tres", ["shared: false"]),
        (False, "linear", ["shared: false"]),
        (True, "cons_tres", ["shared: true"]),
        (True, "linear", []),
        (None, "cons_tres", []),
    ],
)
def test_nodes_are_shared_only_where_slurm_allocates_their_parts(
    *, shared: bool | None, select: str, lines: list[str]
) -> None:
    assert queue(select, shared=shared)[3:] == lines


def test_values_of_a_node_that_differ_from_the_usual_ones() -> None:
    assert of_nodes(node(all_cpus=72, threads=2, memory=None, gres=())) == [
        "cpus_per_node: 64",
        "reserved_cpus: 8",
        "threads_per_core: 2",
        "gpus_per_node: 0",
    ]
    untyped = of_nodes(node(gres=(Gres(name="gpu", kind="", count=64),)))[2:]
    assert untyped[0] == "gpus_per_node: 64"
    assert untyped[1].startswith("# gpu_type: a100")
    too_many = of_nodes(node(gres=(Gres(name="gpu", kind="a100", count=65),)))[2:]
    assert too_many == ["# Slurm counts 65 GPUs on a node, more than hpctrain supports"]
    kinds = tuple(Gres(name="gpu", kind=kind, count=2) for kind in ("a100", "h100"))
    assert of_nodes(node(gres=kinds))[2:] == [
        "gpus_per_node: 4", "gpu_type: a100  # guessed: also h100",
    ]  # fmt: skip


def user(*qos: str, default: str = "") -> Association:
    return Association(
        account="a", partition="", qos=qos, default_qos=default, max_submit_jobs=None
    )


def qualities(*associations: Association, queues: Sequence[LivePartition] = (QUEUE,)) -> list[str]:
    free = LiveQos(name="free", max_time=None, max_nodes=None, max_gpus=None, max_jobs=None)
    small = LiveQos(name="small", max_time=HOUR, max_nodes=2, max_gpus=8, max_jobs=3)
    live = cluster(qos=(free, small), associations=associations, partitions=tuple(queues))
    return [one.strip() for one in qos_lines(live)]


LIMITS = ["max_time: 1h", "max_nodes: 2", "max_gpus: 8", "max_jobs: 3"]


def test_the_qos_of_a_user_and_the_default_of_all_accounts() -> None:
    every = ["qos:", "- name: free", "- name: small", *LIMITS]
    assert qualities() == every
    assert qualities(user("small")) == ["qos:", "- name: small", *LIMITS]
    assert qualities(user("other")) == []
    assert qualities(user("free", default="free"), user("small", default="free")) == [
        "qos:", "- name: free", "default: true", "- name: small", *LIMITS,
    ]  # fmt: skip
    two = (user("free", default="free"), user("small", default="small"))
    assert qualities(*two) == every


def test_the_partitions_of_a_qos_are_those_that_allow_it_if_others_do_not() -> None:
    only = msgspec.structs.replace(QUEUE, name="only", allowed_qos=("small",))
    found = qualities(user("free", "small"), queues=(QUEUE, only))
    assert found == ["qos:", "- name: free", "partitions: [p]", "- name: small", *LIMITS]
    assert "partitions: []" not in qualities(user("free"), queues=(only,))
