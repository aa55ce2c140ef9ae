"""LivePbs: what a server of PBS says of itself, of its queues and of its nodes."""

from collections.abc import Mapping

from hpc_train.base.units import Duration, Memory
from hpc_train.base.value import Value

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
        return number(self.resources.get("ncpus"))

    @property
    def ngpus(self) -> int:
        """Return its GPUs; 0 where the server has no such resource."""
        return number(self.resources.get("ngpus")) or 0

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


def number(text: str | None) -> int | None:
    """Read a whole number of at most nine digits; None for any other text."""
    plain = text is not None and text.isascii() and text.isdecimal() and len(text) < 10
    return int(text) if text is not None and plain else None


def pbs_time(text: str | None) -> Duration | None:
    """Read a time as PBS writes it: HH:MM:SS, or seconds."""
    parts = (text or "").split(":")
    numbers = [number(part) for part in parts]
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
