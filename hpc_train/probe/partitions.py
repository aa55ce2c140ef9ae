"""`scontrol show partition --oneliner` -> partitions."""

from __future__ import annotations

from hpc_train.model.cluster import LivePartition
from hpc_train.model.units import Duration
from hpc_train.probe.scontrol_fields import Record, count, duration, memory, records, word, words


def partitions(text: str) -> tuple[LivePartition, ...]:
    """Return the partitions, in Slurm's order."""
    return tuple(_partition(record) for record in records(text, "PartitionName"))


def _partition(record: Record) -> LivePartition:
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
    """NO means that cores are not shared; other jobs may still be on the node's other cores."""
    return None if not over_subscribe else over_subscribe != "EXCLUSIVE"


def _grace(record: Record) -> Duration | None:
    seconds = count(record, "GraceTime")
    return Duration(seconds) if seconds else duration(record, "GraceTime")
