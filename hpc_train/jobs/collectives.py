"""The collectives that are measured: factor of the bus bandwidth, counts of a message, sizes.

Definitions of nccl-tests, doc/PERFORMANCE.md and the `GetCollByteCount` of each test. Imports the
standard library only, because the program inside the job uses this module too.
"""

from collections.abc import Iterator
from typing import NamedTuple

# In bytes: nccl-tests rounds the part of each rank down to this alignment.
ALIGNMENT = 16
# Name as nccl-tests prints it -> bytes of an element.
DTYPES = {
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "int64": 8,
    "half": 2,
    "bfloat16": 2,
    "float": 4,
    "double": 8,
}
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


class Collective(NamedTuple):
    """`passes` over (n-1)/n of the message, 0 for one whole transfer; `test` of nccl-tests."""

    name: str
    test: str
    passes: int
    reduces: bool = False
    rooted: bool = False
    # False where nccl-tests prints N/A: the result overwrites what is still to be sent.
    in_place: bool = True

    def bus_factor(self, ranks: int) -> float:
        """Return busbw / algbw for a number of ranks."""
        return self.passes * (ranks - 1) / ranks if self.passes else 1.0


class Message(NamedTuple):
    """Elements that a rank sends and receives, and the `count` that nccl-tests prints."""

    send: int
    receive: int
    printed: int

    @property
    def elements(self) -> int:
        """Elements of the whole message, whose bytes are the size S of algbw = S / t."""
        return max(self.send, self.receive)


# Named as in MPI, the only spelling that all of them share.
COLLECTIVES = {
    one.name: one
    for one in (
        Collective("allreduce", "all_reduce_perf", 2, reduces=True),
        Collective("allgather", "all_gather_perf", 1),
        Collective("reduce_scatter", "reduce_scatter_perf", 1, reduces=True),
        Collective("broadcast", "broadcast_perf", 0, rooted=True),
        Collective("alltoall", "alltoall_perf", 1, in_place=False),
        Collective("sendrecv", "sendrecv_perf", 0, in_place=False),
    )
}
_OTHER_NAMES = {"p2p": "sendrecv", "bcast": "broadcast"}


def collective_name(text: str) -> str | None:
    """Return the name of a collective that is typed `all_reduce`, `all-reduce`, `p2p`, ..."""
    plain = {name.replace("_", ""): name for name in COLLECTIVES}
    word = text.lower().replace("_", "").replace("-", "")
    return plain.get(word) or _OTHER_NAMES.get(word)


def message_of(collective: Collective, size: int, dtype: str, ranks: int) -> Message:
    """Return the elements of a message of at most `size` bytes.

    The arrays of allgather, reduce_scatter and alltoall consist of equal parts of the ranks, each
    a multiple of 16 bytes. The message is shorter than `size` if that does not divide, or empty.
    """
    count = size // DTYPES[dtype]
    if collective.passes != 1:
        return Message(count, count, count)
    aligned = max(ALIGNMENT // DTYPES[dtype], 1)
    part = count // ranks // aligned * aligned
    whole = part * ranks
    shapes = {"allgather": (part, whole), "reduce_scatter": (whole, part)}
    return Message(*shapes.get(collective.name, (whole, whole)), part)


def parse_size(text: str) -> int:
    """Return the bytes of `8`, `64K`, `1.5M` or `2G`; units are powers of 1024, as in nccl-tests.

    Raises:
        ValueError: anything else, or less than one byte.
    """
    number = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = number[-1:] if number[-1:] in _UNITS else ""
    try:
        size = int(float(number.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise ValueError(f"{text!r} is not a message size; examples: 8, 64K, 16M, 1G")
    return size


def message_sizes(smallest: int, largest: int, factor: int) -> Iterator[int]:
    """Yield smallest, smallest x factor, ... up to `largest` [bytes]; factor 1 yields one size."""
    size = smallest
    while size <= largest:
        yield size
        if factor == 1:
            return
        size *= factor


def algorithm_bandwidth(size: int, seconds: float) -> float:
    """Return algbw [GB/s = 1e9 B/s] of a message of `size` bytes."""
    return size / seconds / 1e9
