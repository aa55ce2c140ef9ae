"""Comparison of a profile with a live PBS: its queues, their limits and the default one."""

from __future__ import annotations

from hpc_train.model.live_pbs import LivePbs, PbsQueue, number, pbs_time
from hpc_train.model.partition import ANY, Partition
from hpc_train.model.site import SourcedSite
from hpc_train.sites.drift import Differences, Drift, pair


def compare_pbs(site: SourcedSite, pbs: LivePbs) -> Drift:
    """Return the differences; values that only one of the two has are not compared."""
    queues = {queue.name: queue for queue in pbs.queues}
    compared = [
        difference
        for index, partition in enumerate(site.value.partitions)
        if partition.name != ANY
        for difference in _of_queue(site, f"partitions.{index}", partition, queues, pbs)
    ]
    differences = tuple(one for one in compared if one is not None)
    return Drift(compared=len(compared), differences=differences)


def _of_queue(
    site: SourcedSite, key: str, said: Partition, queues: dict[str, PbsQueue], pbs: LivePbs
) -> Differences:
    queue = queues.get(said.name)
    yield pair(site, f"{key}.name", said.name, "not there", same=queue is not None)
    if queue is None:
        return
    if not queue.open:
        yield pair(site, f"{key}.name", said.name, "closed", same=False)
    limits = (
        ("max_time", said.max_time, pbs_time(queue.most.get("walltime"))),
        ("min_time", said.min_time, pbs_time(queue.least.get("walltime"))),
        ("default_time", said.default_time, pbs_time(queue.default.get("walltime"))),
        ("max_nodes", said.max_nodes, number(queue.most.get("nodect"))),
        ("min_nodes", said.min_nodes, number(queue.least.get("nodect"))),
        ("max_gpus", said.max_gpus, number(queue.most.get("ngpus"))),
    )
    for name, mine, found in limits:
        if mine is not None and found is not None:
            yield pair(site, f"{key}.{name}", mine, found, same=mine == found)
    if said.default and pbs.default_queue:
        same = said.name == pbs.default_queue
        yield pair(site, f"{key}.default", said.name, pbs.default_queue, same=same)
