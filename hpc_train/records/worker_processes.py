"""Many log files -> their readings in order, with two processes if that is faster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hpc_train.records.read_log import Log, Reading, Wanted, whole

if TYPE_CHECKING:
    from concurrent.futures import Future

_PROCESSES = 2
# Fewer bytes than this are read before a second process has started.
_WORTH = 64_000_000
_LOT = 16_000_000
_WAITING = 2 * _PROCESSES

_decode = msgspec.msgpack.Decoder(list[Reading]).decode


def worth_it(sizes: Sequence[int]) -> bool:
    """Whether two processes would read files of these sizes [B] faster, and may be started."""
    if sum(sizes) - max(sizes, default=0) < _WORTH // 2 or sum(sizes) < _WORTH:
        return False
    # A forked process has no other threads, but keeps the locks that these threads held.
    tasks = Path("/proc/self/task")
    if not tasks.is_dir() or len(list(tasks.iterdir())) > 1:
        return False
    return len(os.sched_getaffinity(0)) >= _PROCESSES


def spread(logs: Sequence[Log], sizes: Sequence[int], wanted: Wanted) -> Iterator[Reading]:
    """Yield the reading of each file, in order."""
    # Imported here: these are 25 modules, and few reports need a second process.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(_PROCESSES, mp_context=context) as pool:
        waiting: deque[Future[bytes]] = deque()
        for lot in _lots(logs, sizes):
            waiting.append(pool.submit(_read_all, lot, wanted))
            if len(waiting) > _WAITING:
                yield from _decode(waiting.popleft().result())
        while waiting:
            yield from _decode(waiting.popleft().result())


def _read_all(logs: Sequence[Log], wanted: Wanted) -> bytes:
    return msgspec.msgpack.encode([whole(log, wanted) for log in logs])


def _lots(logs: Sequence[Log], sizes: Sequence[int]) -> Iterator[list[Log]]:
    lot: list[Log] = []
    held = 0
    for log, size in zip(logs, sizes, strict=True):
        lot.append(log)
        held += size
        if held >= _LOT:
            yield lot
            lot, held = [], 0
    if lot:
        yield lot
