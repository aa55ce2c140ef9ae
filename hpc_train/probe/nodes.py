"""`scontrol show node --oneliner` -> nodes."""

from __future__ import annotations

import re

from hpc_train.model.cluster import Gres, LiveNode
from hpc_train.probe.scontrol_fields import Record, count, memory, records, word, words

# gpu:a100:4(S:0-1), gpu:4, gpu:1g.10gb:7, nvme:1600G, craynetwork:4
_GRES = re.compile(r"^(?P<name>[^:,()]+)(?::(?P<kind>(?!\d+:)[^:,()]+))?:(?P<count>[0-9]{1,9})")


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


def gres(text: str) -> tuple[Gres, ...]:
    """Read a list of generic resources; sizes with a unit, such as disks, are left out."""
    return tuple(
        Gres(name=match["name"], kind=match["kind"] or "", count=int(match["count"]))
        for part in re.sub(r"\([^()]*\)", "", text).split(",")
        if (match := _GRES.fullmatch(part.strip()))
    )
