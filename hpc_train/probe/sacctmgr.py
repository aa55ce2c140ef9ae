"""`sacctmgr show qos` and `show assoc` -> qualities of service, and the user's accounts."""

from __future__ import annotations

from hpc_train.model.cluster import Association, LiveQos
from hpc_train.probe.scontrol_fields import count, duration, table, tres, word, words


def qualities(text: str) -> tuple[LiveQos, ...]:
    """Read `format=Name,MaxWall,MaxTRES,MaxJobsPU`."""
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
            )
        )
    return tuple(one for one in found if one.name)


def associations(text: str, cluster: str) -> tuple[Association, ...]:
    """Read `format=Cluster,Account,Partition,QOS,DefaultQOS,MaxSubmit` of one user."""
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
