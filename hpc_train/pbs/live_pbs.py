"""A live PBS: what it says of its queues and nodes, and the limits of a job in a queue."""

import shutil
from collections.abc import Callable, Mapping
from typing import Any, Literal

from hpc_train.base.errors import ProbeError
from hpc_train.base.processes import Ask, ask, whole
from hpc_train.base.values import Duration, Memory, Value
from hpc_train.pbs.jobs import Attributes, entries

Resources = Mapping[str, str]


class PbsQueue(Value, frozen=True, kw_only=True):
    """A queue; `most`, `least` and `default` are limits and defaults of its resources.

    `destinations` are the queues to which a routing queue sends its jobs; `hidden` ones take jobs
    only from there. `chunk` are resources that each chunk gets.
    """

    name: str
    open: bool = True
    hidden: bool = False
    destinations: tuple[str, ...] = ()
    most: Resources = {}
    least: Resources = {}
    default: Resources = {}
    chunk: Resources = {}


class PbsNode(Value, frozen=True, kw_only=True):
    """A vnode: its host, its resources, the queue that owns it, and whether jobs share it."""

    name: str
    host: str
    resources: Resources
    queue: str = ""
    sharing: str = ""

    @property
    def ncpus(self) -> int | None:
        """Return its cores, as PBS counts them."""
        return whole(self.resources.get("ncpus"))

    @property
    def ngpus(self) -> int:
        """Return its GPUs; 0 where the server has no such resource."""
        return whole(self.resources.get("ngpus")) or 0

    @property
    def memory(self) -> Memory | None:
        """Return its memory, rounded down to mebibytes."""
        return pbs_memory(self.resources.get("mem", ""))


class LivePbs(Value, frozen=True, kw_only=True):
    """A server of PBS; `history_s` is how long it keeps finished jobs, None if it does not.

    `unread` are errors of commands.
    """

    name: str
    version: str = ""
    default_queue: str = ""
    history: str | None = None
    default: Resources = {}
    available: Resources = {}
    queues: tuple[PbsQueue, ...] = ()
    nodes: tuple[PbsNode, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[PbsQueue, ...]:
        """Return the queues to which users submit."""
        return tuple(queue for queue in self.queues if queue.open and not queue.hidden)


def pbs_time(text: str | None) -> Duration | None:
    """Read a time as PBS writes it: HH:MM:SS, or seconds."""
    parts = (text or "").split(":")
    numbers = [whole(part) for part in parts]
    if len(parts) > 3 or None in numbers:
        return None
    seconds = 0
    for one in numbers:
        seconds = seconds * 60 + (one or 0)
    return Duration(seconds) if seconds else None


def pbs_memory(text: str) -> Memory | None:
    """Read a size as PBS writes it: 527672488kb, 2gb; whole mebibytes."""
    units = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "b": 1}
    for unit, size in units.items():
        digits = text.lower().removesuffix(unit)
        if digits != text.lower() and digits.isdecimal() and len(digits) < 19:
            return Memory(int(digits) * size >> 20) if int(digits) * size >> 20 else None
    return None


_TIMEOUT_S = 60.0


# What starts the ranks of a job on its nodes.
_STARTERS = ("mpiexec", "mpirun", "pbs_tmrsh")
_OPEN_MPI = ("Open MPI", "OpenRTE", "Open RTE", "PRRTE")


def starters(question: Ask = ask) -> list[str]:
    """Return what starts ranks on this machine; Open MPI's mpiexec is its mpirun, not Cray PALS."""
    found = [one for one in _STARTERS if shutil.which(one)]
    if "mpiexec" in found and any(
        word in question("mpiexec", "--version", timeout_s=10.0).text for word in _OPEN_MPI
    ):
        return [one for one in _STARTERS[1:] if one in ("mpirun", *found)]
    return found


def read_pbs(question: Ask = ask) -> LivePbs:
    """Query the server, its queues and its nodes; the nodes may be missing.

    Raises:
        ProbeError: server or queues cannot be read.
    """
    server = _must(question, ("qstat", "-B", "-f"), "Server: ")
    queues = _must(question, ("qstat", "-Q", "-f"), "Queue: ")
    nodes, problem = _entries(question, ("pbsnodes", "-a"), "")
    name, attributes = next(iter(server.items()))
    kept = attributes.get("job_history_enable") == "True"
    return LivePbs(
        name=name,
        version=attributes.get("pbs_version", ""),
        default_queue=attributes.get("default_queue", ""),
        history=attributes.get("job_history_duration", "336:00:00") if kept else None,
        default=resources(attributes, "resources_default"),
        available=resources(attributes, "resources_available"),
        queues=tuple(_queue(name, one) for name, one in queues.items()),
        nodes=tuple(_node(name, one) for name, one in nodes.items()),
        unread=(f"could not be read: pbsnodes -a: {problem}",) if problem else (),
    )


def _must(question: Ask, argv: tuple[str, ...], head: str) -> Attributes:
    found, problem = _entries(question, argv, head)
    if problem:
        raise ProbeError(
            f"`{' '.join(argv)}`: {problem}",
            "run it on a login node where PBS's commands work",
        )
    return found


def _entries(question: Ask, argv: tuple[str, ...], head: str) -> tuple[Attributes, str]:
    """Return the entries of an answer, and why there are none."""
    answer = question(*argv, timeout_s=_TIMEOUT_S)
    found = entries(answer.text, head)
    return found, "" if found else answer.problem or "an unknown format"


def _queue(name: str, attributes: Mapping[str, str]) -> PbsQueue:
    routes = attributes.get("route_destinations", "")
    return PbsQueue(
        name=name,
        open="True" == attributes.get("enabled") == attributes.get("started"),
        hidden=attributes.get("from_route_only") == "True",
        # A destination may be a queue of another server: NAME@SERVER.
        destinations=tuple(one.partition("@")[0].strip() for one in routes.split(",") if one),
        most=resources(attributes, "resources_max"),
        least=resources(attributes, "resources_min"),
        default=resources(attributes, "resources_default"),
        chunk=resources(attributes, "default_chunk"),
    )


def _node(name: str, attributes: Mapping[str, str]) -> PbsNode:
    own = resources(attributes, "resources_available")
    return PbsNode(
        name=name,
        host=own.get("host") or name,
        resources=own,
        queue=attributes.get("queue", ""),
        sharing=attributes.get("sharing", ""),
    )


def resources(attributes: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the resources of a kind: `resources_max`, `resources_available`, `default_chunk`."""
    start = f"{kind}."
    return {
        name.removeprefix(start): value
        for name, value in attributes.items()
        if name.startswith(start)
    }


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
    longest = pbs_time(queue.most.get("walltime")) or _widest(targets, "walltime", read=pbs_time)
    default = pbs_time(queue.default.get("walltime") or pbs.default.get("walltime"))
    return PbsQueueLimits(
        hosts=len({node.host for node in all_nodes(pbs, queue)}),
        stated_nodes=whole(queue.most.get("nodect")) or _widest(targets, "nodect"),
        min_nodes=whole(queue.least.get("nodect")) or _widest(targets, "nodect", "least"),
        max_gpus=whole(queue.most.get("ngpus")) or _widest(targets, "ngpus"),
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
    targets: tuple[PbsQueue, ...],
    key: str,
    which: Literal["most", "least"] = "most",
    read: Callable[[str | None], Any] = whole,
) -> Any:
    """Return the widest limit of the destinations; None if one has none."""
    found = [read(getattr(one, which).get(key)) for one in targets]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(targets):
        return None
    return max(known) if which == "most" else min(known)
