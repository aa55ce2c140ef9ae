"""Items of a live pipe -> batches, each delivered within a bounded time.

A generator that waits for the next item cannot yield the items that it has. Therefore a thread
takes the items, and the reader of the batches waits for a bounded time.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

# [s]; shorter than a delay that a user notices.
PATIENCE = 0.25


def is_live(path: Path) -> bool:
    """Whether a path is a pipe, a socket or a terminal, whose content may still arrive."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISCHR(kind)


def lots(items: Iterable[T], most: int, patience: float = PATIENCE) -> Iterator[list[T]]:
    """Yield the items in lots of `most`, or of those that arrive `patience` [s] after the first.

    An exception of `items` is raised after the items before it.
    """
    arrivals = _Arrivals(items, most)
    try:
        while lot := arrivals.take(patience):
            yield lot
    finally:
        arrivals.stop()


class _Arrivals(Generic[T]):
    """Items that a thread has taken and that are not read yet, at most one batch."""

    def __init__(self, items: Iterable[T], most: int) -> None:
        self._items = items
        self._most = most
        self._held: list[T] = []
        self._failure: BaseException | None = None
        self._ended = self._stopped = False
        self._change = threading.Condition()
        # A daemon: a silent pipe must not keep the program from ending.
        threading.Thread(target=self._fill, daemon=True).start()

    def take(self, patience: float) -> list[T]:
        """Return the next lot, empty at the end."""
        with self._change:
            self._change.wait_for(lambda: self._held or self._ended)
            self._change.wait_for(self._is_full, patience)
            lot, self._held = self._held, []
            self._change.notify_all()
        if not lot and self._failure is not None:
            raise self._failure
        return lot

    def stop(self) -> None:
        """Stop the thread after the item that it waits for."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _is_full(self) -> bool:
        return self._ended or len(self._held) >= self._most

    def _fill(self) -> None:
        try:
            for item in self._items:
                if not self._add(item):
                    return
        except BaseException as failure:  # noqa: BLE001  (raised where the lots are read)
            self._failure = failure
        with self._change:
            self._ended = True
            self._change.notify_all()

    def _add(self, item: T) -> bool:
        """Add an item when there is space; return whether items are still read."""
        with self._change:
            while len(self._held) >= self._most and not self._stopped:
                self._change.wait()
            self._held.append(item)
            if len(self._held) in (1, self._most):
                self._change.notify_all()
            return not self._stopped
