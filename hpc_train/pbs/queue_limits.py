"""The limits of a job in a queue of a live PBS, those of the destinations of a route included."""

from typing import Literal

from hpc_train.base.units import Duration
from hpc_train.base.value import Value
from hpc_train.pbs.live_pbs import LivePbs, PbsNode, PbsQueue, number, pbs_time


class PbsQueueLimits(Value, frozen=True, kw_only=True):
    """Limits of a job; None if the server states none.

    `hosts` is the number of hosts that the queue has, 0 if it is unknown; `stated_nodes` is the
    limit of the queue, which may be above it.
    """

    hosts: int
    stated_nodes: int | None = None
    min_nodes: int | None = None
    max_gpus: int | None = None
    min_time: Duration | None = None
    max_time: Duration | None = None
    default_time: Duration | None = None

    @property
    def max_nodes(self) -> int | None:
        """Return the largest job that can start."""
        if self.stated_nodes is None or not self.hosts:
            return self.stated_nodes
        return min(self.stated_nodes, self.hosts)


def queue_limits(pbs: LivePbs, queue: PbsQueue) -> PbsQueueLimits:
    """Return the limits of a queue; what a route does not limit, its destinations may."""
    targets = destinations(pbs, queue)
    longest = _longest(queue, targets)
    default = pbs_time(queue.default.get("walltime") or pbs.default.get("walltime"))
    return PbsQueueLimits(
        hosts=len({node.host for node in all_nodes(pbs, queue)}),
        stated_nodes=number(queue.most.get("nodect")) or _widest(targets, "most"),
        min_nodes=number(queue.least.get("nodect")) or _widest(targets, "least"),
        max_gpus=number(queue.most.get("ngpus")) or _widest(targets, "most", "ngpus"),
        min_time=pbs_time(queue.least.get("walltime")),
        max_time=longest,
        default_time=default if default and (longest is None or default <= longest) else None,
    )


def destinations(pbs: LivePbs, queue: PbsQueue) -> tuple[PbsQueue, ...]:
    """Return the queues of this server to which a routing queue sends its jobs."""
    named = {one.name: one for one in pbs.queues}
    return tuple(named[one] for one in queue.destinations if one in named)


def all_nodes(pbs: LivePbs, queue: PbsQueue) -> tuple[PbsNode, ...]:
    """Return the nodes of a queue, or of the destinations of a route."""
    queues = destinations(pbs, queue) or (queue,)
    return tuple({node.name: node for one in queues for node in nodes_of(pbs, one)}.values())


def nodes_of(pbs: LivePbs, queue: PbsQueue) -> tuple[PbsNode, ...]:
    """Return the nodes of a queue: its own, those whose Qlist has it, else those of no queue."""
    wanted = queue.chunk.get("Qlist", queue.name)
    own = [
        node
        for node in pbs.nodes
        if node.queue == queue.name or wanted in node.resources.get("Qlist", "").split(",")
    ]
    free = [node for node in pbs.nodes if not node.queue and "Qlist" not in node.resources]
    return tuple(own or free)


def _widest(
    targets: tuple[PbsQueue, ...], which: Literal["most", "least"], key: str = "nodect"
) -> int | None:
    """Return the widest limit of the destinations, of nodes or GPUs; None if one has none."""
    found = [number(getattr(one, which).get(key)) for one in targets]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(targets):
        return None
    return max(known) if which == "most" else min(known)


def _longest(queue: PbsQueue, targets: tuple[PbsQueue, ...]) -> Duration | None:
    own = pbs_time(queue.most.get("walltime"))
    if own or not targets:
        return own
    found = [pbs_time(one.most.get("walltime")) for one in targets]
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(targets) else None
