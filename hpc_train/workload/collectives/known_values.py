"""Values to send, and those that must arrive: exact in each type, in any order of the sum.

Element i of rank r is a whole number of 1 to 15. In a sum only eight ranks have a part in an
element, the others have 0 there: so the sum is at most 120, which int8 and bfloat16 represent, for
any number of ranks. No expected value is 0, to which the result is set before.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from hpc_train.model.collectives import Collective

VALUES, TOGETHER = 15, 8
# Elements of a temporary tensor of int64, so that a large message needs no second one of its size.
_BLOCK = 1 << 20


def values(places: Tensor, rank: int, ranks: int, *, reduces: bool) -> Tensor:
    """Return what a rank sends at these places of its array, as int64."""
    sent = 1 + (places * 31 + rank * 17) % VALUES
    return torch.where((places + rank) % ranks < TOGETHER, sent, 0) if reduces else sent


def fill(send: Tensor, rank: int, ranks: int, *, reduces: bool) -> None:
    """Write the values of a rank into its tensor."""
    for block, places in _blocks(send):
        block.copy_(values(places, rank, ranks, reduces=reduces))


def count_wrong(collective: Collective, received: Tensor, rank: int, ranks: int, root: int) -> int:
    """Return the number of elements of the result that differ from what must have arrived."""
    wrong = 0
    for block, places in _blocks(received):
        due = _expected(collective, places, len(received), (rank, ranks, root))
        wrong += int((block != due.to(block.dtype)).sum())
    return wrong


def _expected(
    collective: Collective, places: Tensor, count: int, position: tuple[int, int, int]
) -> Tensor:
    """Return the values at these places of a result of `count` elements."""
    rank, ranks, root = position
    name = collective.name
    if collective.reduces:
        own = places + rank * count if name == "reduce_scatter" else places
        return _sum(own, ranks)
    if name == "broadcast":
        return values(places, root, ranks, reduces=False)
    if name == "sendrecv":
        return values(places, (rank - 1) % ranks, ranks, reduces=False)
    part = count // ranks
    sender, place = places // part, places % part
    if name == "alltoall":
        place = place + rank * part
    return 1 + (place * 31 + sender * 17) % VALUES


def _sum(places: Tensor, ranks: int) -> Tensor:
    total = torch.zeros_like(places)
    for shift in range(min(TOGETHER, ranks)):
        # The rank for which (place + rank) % ranks is this shift.
        sender = (shift - places) % ranks
        total += 1 + (places * 31 + sender * 17) % VALUES
    return total


def _blocks(tensor: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield parts of a tensor, each with the places of its elements."""
    for start in range(0, len(tensor), _BLOCK):
        block = tensor[start : start + _BLOCK]
        yield block, torch.arange(start, start + len(block), device=tensor.device)
