"""What a log parser is, and what it yields."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import Protocol

import msgspec

from hpc_train.model.record import Scope

LogText = bytes | mmap


class Hit(msgspec.Struct, frozen=True, gc=False):
    """One measurement, found at byte `offset` of a log.

    `unit` may stay empty for the metrics of `model.record.UNITS`.
    """

    offset: int
    metric: str
    value: float
    scope: Scope
    step: int | None = None
    rank: int | None = None
    unit: str = ""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A place that should have held measurements: a line cut in the middle, two lines in one."""

    offset: int


class LogParser(Protocol):
    """Finds the measurements of one kind of log.

    `literals`: at least one of them occurs in every log of this kind. Patterns should begin with a
    literal: only then does `re` skip through a large log at memory speed.
    """

    literals: tuple[bytes, ...]

    def parse(self, data: LogText, rank: int | None = None) -> Iterator[Hit | Unreadable]:
        """Yield what `data` states, by ascending offset; it may be any log, damaged or foreign.

        `rank` is the rank whose log this is, None when the log is shared by several.
        """
        ...
