"""`scontrol show node --oneliner` -> nodes."""

from __future__ import annotations

from hpc_train.model.cluster import LiveNode, gres
from hpc_train.probe.scontrol_fields import Record, count, memory, records, word, words


def nodes(text: str) -> tuple[LiveNode, ...]:
    """Return the nodes, in Slurm's order."""
    return tuple(_node(record) for record in records(text, "NodeName"))


def _node(record: Record) -> LiveNode:
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
