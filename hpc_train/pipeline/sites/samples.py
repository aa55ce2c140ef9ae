"""Jobs that a profile must be able to run: each launcher on 1, 2 and the most nodes."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.job import JobSpec, Resources
from hpc_train.model.partition import ANY, Partition
from hpc_train.model.site import SiteProfile
from hpc_train.model.units import Duration
from hpc_train.model.value import Sourced

# On one node by what they are.
_ONE_NODE = ("spawn", "single")
_SHORT = Duration.parse("5m")


def sample_jobs(profile: SiteProfile) -> Iterator[Sourced[JobSpec]]:
    """Yield jobs within the profile's limits: partition x launcher x {1, 2, most} nodes.

    A profile that leaves its partitions to the user gets the name `gpu`.
    """
    for partition in profile.partitions or (Partition(name=ANY),):
        for launcher in profile.launchers.allowed:
            for nodes in _counts(partition, launcher):
                yield _sample(profile, partition, launcher, nodes)


def _counts(partition: Partition, launcher: str) -> tuple[int, ...]:
    least = partition.min_nodes or 1
    most = partition.max_nodes or max(2, least)
    gpus = partition.gpus_per_node or 1
    if partition.max_gpus is not None:
        most = max(1, min(most, partition.max_gpus // gpus))
    wanted = dict.fromkeys(count for count in (1, 2, most) if least <= count <= most)
    return tuple(wanted) if launcher not in _ONE_NODE else tuple(n for n in wanted if n == 1)


def _sample(
    profile: SiteProfile, partition: Partition, launcher: str, nodes: int
) -> Sourced[JobSpec]:
    time = max(_SHORT, partition.min_time or _SHORT)
    gpus = partition.gpus_per_node or 0
    if partition.max_gpus is not None:
        gpus = min(gpus, max(1, partition.max_gpus // nodes))
    named = None if partition.name == ANY and not profile.partitions else partition.name
    job = JobSpec(
        name=f"sample-{launcher}-{nodes}",
        command=("python", "train.py"),
        launcher=launcher,
        partition="gpu" if named == ANY else named,
        account=profile.account.example,
        resources=Resources(nodes=nodes, gpus_per_node=gpus, time=Duration(time)),
    )
    place = f"{partition.name}, {launcher}, {nodes} nodes"
    return Sourced(value=job, origins={"": place})
