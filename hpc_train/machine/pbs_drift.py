"""Comparison of a profile with a live PBS: its queues, their limits and the default one."""

from __future__ import annotations

from hpc_train.machine.drift import Differences, Drift, pair
from hpc_train.pbs.live_pbs import LivePbs, PbsQueue
from hpc_train.pbs.queue_limits import queue_limits
from hpc_train.sites.partition import ANY, Partition
from hpc_train.sites.profile import SourcedSite

_LIMITS = ("max_time", "min_time", "default_time", "min_nodes", "max_gpus")


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
    found = queue_limits(pbs, queue)
    # A job above the number of hosts never starts: a profile may state either of the two.
    if said.max_nodes is not None and found.max_nodes is not None:
        same = said.max_nodes in (found.max_nodes, found.stated_nodes)
        yield pair(site, f"{key}.max_nodes", said.max_nodes, found.max_nodes, same=same)
    for name in _LIMITS:
        mine, theirs = getattr(said, name), getattr(found, name)
        if mine is not None and theirs is not None:
            yield pair(site, f"{key}.{name}", mine, theirs, same=mine == theirs)
    if said.default and pbs.default_queue:
        same = said.name == pbs.default_queue
        yield pair(site, f"{key}.default", said.name, pbs.default_queue, same=same)
