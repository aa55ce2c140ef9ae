"""Several streams of hits -> one, in the order of the log."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from hpc_train.records.parsers.base import Hit, Unreadable

Hits = Iterator[Hit | Unreadable]


def in_order(streams: Sequence[Hits]) -> Iterator[tuple[int, Hit | Unreadable]]:
    """Yield (number of its stream, hit) by ascending offset; of equal ones, the first stream's.

    While one stream goes on alone, as most do, a hit costs one comparison: `heapq.merge` takes
    nearly three times as long.
    """
    firsts = ((number, next(hits, None)) for number, hits in enumerate(streams))
    heads = [(hit.offset, number, hit) for number, hit in firsts if hit is not None]
    heapify(heads)
    while heads:
        _, number, hit = heappop(heads)
        yield number, hit
        # At the same offset, the stream with the lower number comes first.
        last = heads[0][0] - (heads[0][1] < number) if heads else sys.maxsize
        for hit in streams[number]:
            if hit.offset > last:
                heappush(heads, (hit.offset, number, hit))
                break
            yield number, hit
