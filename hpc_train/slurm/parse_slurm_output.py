"""The output of Slurm's commands -> the values of a Cluster; one function for each command."""

from __future__ import annotations

import re

from hpc_train.base.slurm_options import gres
from hpc_train.base.units import Duration
from hpc_train.sites.detection import (
    Fields,
    count,
    duration,
    memory,
    records,
    table,
    tres,
    word,
    words,
)
from hpc_train.slurm.live_cluster import Association, LiveNode, LivePartition, LiveQos

# Lines of `srun --mpi=list`.
_NAME = re.compile(r"^(?:srun: )?\s*([a-z][a-z0-9_]*)\s*$")
_VERSIONS = re.compile(r"versions available: (.*)")


def partitions(text: str) -> tuple[LivePartition, ...]:
    """Read `scontrol show partition --oneliner`; the order is Slurm's."""
    return tuple(_partition(record) for record in records(text, "PartitionName"))


def _partition(record: Fields) -> LivePartition:
    return LivePartition(
        name=word(record, "PartitionName"),
        state=word(record, "State"),
        default=word(record, "Default") == "YES",
        nodes=count(record, "TotalNodes") or 0,
        min_nodes=count(record, "MinNodes"),
        max_nodes=count(record, "MaxNodes"),
        max_time=duration(record, "MaxTime"),
        default_time=duration(record, "DefaultTime"),
        max_memory=memory(record, "MaxMemPerNode"),
        shared=_shared(word(record, "OverSubscribe") or word(record, "Shared")),
        qos=word(record, "QoS"),
        allowed_qos=words(record, "AllowQos"),
        allowed_accounts=words(record, "AllowAccounts"),
        preempt_mode=word(record, "PreemptMode"),
        grace=_grace(record),
    )


def _shared(over_subscribe: str) -> bool | None:
    """Return whether jobs share nodes; with NO they share nodes, but no cores."""
    return None if not over_subscribe else over_subscribe != "EXCLUSIVE"


def _grace(record: Fields) -> Duration | None:
    seconds = count(record, "GraceTime")
    return Duration(seconds) if seconds else duration(record, "GraceTime")


def nodes(text: str) -> tuple[LiveNode, ...]:
    """Read `scontrol show node --oneliner`; the order is Slurm's."""
    return tuple(_node(record) for record in records(text, "NodeName"))


def _node(record: Fields) -> LiveNode:
    total = count(record, "CPUTot") or 0
    return LiveNode(
        name=word(record, "NodeName"),
        arch=word(record, "Arch"),
        # 22.05 and later print the number without CoreSpecCount.
        cpus=count(record, "CPUEfctv") or total,
        all_cpus=total,
        threads=count(record, "ThreadsPerCore") or 1,
        memory=memory(record, "RealMemory"),
        gres=gres(word(record, "Gres")),
        features=words(record, "AvailableFeatures"),
        partitions=words(record, "Partitions"),
        state=word(record, "State"),
    )


def qualities(text: str) -> tuple[LiveQos, ...]:
    """Read `sacctmgr show qos format=Name,MaxWall,MaxTRES,MaxJobsPU,GraceTime`."""
    found = []
    for record in table(text):
        most = tres(word(record, "MaxTRES"))
        found.append(
            LiveQos(
                name=word(record, "Name"),
                max_time=duration(record, "MaxWall"),
                max_nodes=most.get("node"),
                max_gpus=most.get("gres/gpu"),
                max_jobs=count(record, "MaxJobsPU"),
                grace=_grace(record),
            )
        )
    return tuple(one for one in found if one.name)


def associations(text: str, cluster: str) -> tuple[Association, ...]:
    """Read `sacctmgr show assoc` of one user.

    The format is `Cluster,Account,Partition,QOS,DefaultQOS,MaxSubmit`.
    """
    return tuple(
        Association(
            account=word(record, "Account"),
            partition=word(record, "Partition"),
            qos=words(record, "QOS"),
            default_qos=word(record, "Def QOS"),
            max_submit_jobs=count(record, "MaxSubmit"),
        )
        for record in table(text)
        if word(record, "Account") and word(record, "Cluster").lower() == cluster.lower()
    )


def mpi_plugins(text: str) -> tuple[str, ...]:
    """Read `srun --mpi=list`; names with a version come last.

    Older Slurm prints `srun: pmix` on stderr.
    """
    plain, versions = [], []
    for line in text.splitlines():
        if match := _VERSIONS.search(line):
            versions += [name for name in re.split(r"[,\s]+", match[1]) if name]
        elif match := _NAME.match(line):
            plain.append(match[1])
    return tuple(dict.fromkeys((*plain, *versions)))
