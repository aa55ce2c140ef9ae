"""What profile and cluster say differently, and what is no difference."""

from pathlib import Path

import msgspec
import pytest

from hpc_train.base.slurm_options import Gres
from hpc_train.base.values import Duration, Memory
from hpc_train.machine.drift import compare
from hpc_train.sites.load import load_site
from hpc_train.slurm.live_cluster import Bounds, Cluster, LiveNode, LivePartition, LiveQos, Mpi

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
slurm: "23.11"
launchers: {default: srun, allowed: [srun], mpi: pmix}
detect: {clusters: [mine]}
partitions:
  - {name: gpu, default: true, max_nodes: 8, max_time: 1d, cpus_per_node: 64, mem_per_node: 500G,
     gpus_per_node: 4, gpu_type: a100, arch: x86_64}
  - {name: night, select: {partition: gpu, qos: long}, max_time: 3d}
  - {name: any, select: {constraint: fat}}
qos: [{name: long, max_time: 3d}]
limits: {max_array_size: 1000}
lifecycle: {requeue: false}
"""
NODE = LiveNode(
    name="n1",
    arch="x86_64",
    cpus=64,
    all_cpus=64,
    threads=1,
    memory=Memory.parse("512G"),
    gres=(Gres(name="gpu", kind="a100", count=4),),
    features=("fat",),
    partitions=("gpu",),
    state="IDLE",
)
GPU = LivePartition(
    name="gpu",
    state="UP",
    default=True,
    nodes=16,
    min_nodes=None,
    max_nodes=8,
    max_time=Duration.parse("1d"),
    default_time=None,
    shared=False,
    qos="",
    allowed_qos=(),
    allowed_accounts=(),
    preempt_mode="",
    grace=None,
)
LONG = LiveQos(
    name="long", max_time=Duration.parse("3d"), max_nodes=None, max_gpus=None, max_jobs=None
)
CLUSTER = Cluster(
    name="mine",
    version="23.11.4",
    partitions=(GPU,),
    nodes=(NODE,),
    mpi=Mpi(plugins=("pmix", "pmi2")),
    qos=(LONG,),
    limits=Bounds(max_array_size=1001, requeue=False),
)


def differences(tmp_path: Path, text: str, cluster: Cluster) -> list[tuple[str, str, str, str]]:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    found = compare(load_site(str(path)), cluster).differences
    return [(one.key, one.profile, one.cluster, one.place.rpartition(":")[2]) for one in found]


def alone(tmp_path: Path, cluster: Cluster) -> list[tuple[str, str, str, str]]:
    """Compare where only one entry of the profile is about the Slurm partition."""
    lines = [line for line in SITE.splitlines() if "name: night" not in line]
    return differences(tmp_path, "\n".join(lines), cluster)


def test_a_profile_that_is_right(tmp_path: Path) -> None:
    assert differences(tmp_path, SITE, CLUSTER) == []
    assert alone(tmp_path, CLUSTER) == []


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"max_nodes": 4}, ("partitions.0.max_nodes", "8", "4", "9")),
        ({"max_time": None}, ("partitions.0.max_time", "1-00:00:00", "no limit", "9")),
        ({"default": False}, ("partitions.0.default", "true", "false", "9")),
        ({"name": "gpu2"}, ("partitions.0.name", "gpu", "not there", "9")),
    ],
)
def test_partitions(
    tmp_path: Path, change: dict[str, object], difference: tuple[str, str, str, str]
) -> None:
    live = msgspec.structs.replace(GPU, **change)
    assert difference in alone(tmp_path, msgspec.structs.replace(CLUSTER, partitions=(live,)))


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"cpus": 128}, ("partitions.0.cpus_per_node", "64", "128", "9")),
        ({"gres": ()}, ("partitions.0.gpus_per_node", "4", "0", "10")),
        (
            {"gres": (Gres(name="gpu", kind="h100", count=4),)},
            ("partitions.0.gpu_type", "a100", "h100", "10"),
        ),
        ({"memory": Memory.parse("256G")}, ("partitions.0.mem_per_node", "500G", "256G", "9")),
        ({"arch": "aarch64"}, ("partitions.0.arch", "x86_64", "aarch64", "10")),
    ],
)
def test_nodes(
    tmp_path: Path, change: dict[str, object], difference: tuple[str, str, str, str]
) -> None:
    live = msgspec.structs.replace(NODE, **change)
    assert difference in alone(tmp_path, msgspec.structs.replace(CLUSTER, nodes=(live,)))


def test_a_partition_of_several_kinds_of_nodes_has_what_one_of_them_has(tmp_path: Path) -> None:
    eight = msgspec.structs.replace(NODE, gres=(Gres(name="gpu", kind="a100", count=8),), cpus=128)
    for nodes in ((NODE, eight), (eight, NODE)):
        live = msgspec.structs.replace(CLUSTER, nodes=nodes)
        assert alone(tmp_path, live) == alone(tmp_path, CLUSTER)


def test_nodes_with_as_much_memory_as_the_profile_says(tmp_path: Path) -> None:
    live = msgspec.structs.replace(NODE, memory=Memory.parse("500G"))
    assert alone(tmp_path, msgspec.structs.replace(CLUSTER, nodes=(live,))) == alone(
        tmp_path, CLUSTER
    )


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"version": "23.02.1"}, ("slurm", "23.11", "23.02.1", "5")),
        ({"version": "23.110"}, ("slurm", "23.11", "23.110", "5")),
        ({"name": "other"}, ("detect.clusters", "mine", "other", "7")),
        ({"mpi": Mpi(plugins=("pmi2",))}, ("launchers.mpi", "pmix", "pmi2", "6")),
        (
            {"mpi": Mpi(plugins=("pmix",), broken=("pmix",))},
            ("launchers.mpi", "pmix", "srun cannot load it", "6"),
        ),
        (
            {"qos": (msgspec.structs.replace(LONG, name="longer"),)},
            ("qos.0.name", "long", "not there", "13"),
        ),
        (
            {"qos": (msgspec.structs.replace(LONG, max_time=None),)},
            ("qos.0.max_time", "3-00:00:00", "no limit", "13"),
        ),
        (
            {"limits": Bounds(max_array_size=500)},
            ("limits.max_array_size", "1000", "500", "14"),
        ),
        ({"limits": Bounds(requeue=True)}, ("lifecycle.requeue", "False", "True", "15")),
    ],
)
def test_the_rest(
    tmp_path: Path, change: dict[str, object], difference: tuple[str, str, str, str]
) -> None:
    live = msgspec.structs.replace(CLUSTER, **change)
    assert differences(tmp_path, SITE, live) == [difference]


@pytest.mark.parametrize(
    ("said", "live", "differs"),
    [
        # What `site init` writes of each.
        (16, {"max_nodes": None}, False),
        (16, {"max_nodes": 32}, False),
        (16, {"max_nodes": 0}, False),
        # A site may limit elsewhere than in its partitions.
        (8, {"max_nodes": None}, False),
        (17, {"max_nodes": None}, True),
        (15, {"max_nodes": 32}, True),
        (8, {"max_nodes": None, "nodes": 0}, False),
    ],
)
def test_the_largest_job(tmp_path: Path, said: int, live: dict[str, object], differs: bool) -> None:
    text = SITE.replace("max_nodes: 8", f"max_nodes: {said}").replace("name: night", "name: gpu2")
    text = text.replace("partition: gpu, qos", "qos")
    part = msgspec.structs.replace(GPU, **live)
    found = differences(tmp_path, text, msgspec.structs.replace(CLUSTER, partitions=(part,)))
    assert [key for key, *_ in found] == (["partitions.0.max_nodes"] if differs else [])


def test_what_could_not_be_read_is_no_difference(tmp_path: Path) -> None:
    blind = msgspec.structs.replace(CLUSTER, nodes=(), mpi=Mpi(), qos=(), limits=Bounds())
    assert differences(tmp_path, SITE, blind) == []
