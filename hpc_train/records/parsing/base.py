"""What a log parser is, and what it yields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from hpc_train.model.record import Scope
from hpc_train.records.line import Line

# The rank that the line's prefix or its file names.
OF_LINE = -1


class Hit(msgspec.Struct, frozen=True, gc=False):
    """One measurement that a line states.

    `unit` may stay empty for the metrics of `model.record.UNITS`. `rank` is only needed where the
    text itself names one. `steps` is the number of steps of which the value is the mean. `variant`
    distinguishes two values of one metric (`in_place`, `max`). Hits of the same parser, metric and
    `once` are one measurement that several ranks print: the first one counts.
    """

    metric: str
    value: float
    scope: Scope
    step: int | None = None
    rank: int | None = OF_LINE
    unit: str = ""
    steps: int = 1
    message_size: int | None = None
    variant: str = ""
    once: str = ""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A line that should have held measurements: cut in the middle, or two lines in one."""


class LogParser(Protocol):
    """Reads one kind of log; an object reads one log, line by line, and may have state.

    A class or function that returns a new parser is registered. `literals`: every line that
    the parser looks for holds at least one of them (no line end in it; the rarer, the faster), and
    only those lines are handed to `read`. `wants_next` asks for the following line as well,
    whatever it holds: a parser sets it at the head of a table and clears it at the end.

    `title`, `sample` and `states` are the documentation: who prints such logs, a few lines of one,
    and the scope of each metric that they state.
    """

    @property
    def title(self) -> str: ...
    @property
    def literals(self) -> tuple[bytes, ...]: ...
    @property
    def sample(self) -> str: ...
    @property
    def states(self) -> Mapping[str, Scope]: ...
    @property
    def wants_next(self) -> bool: ...

    def read(self, line: Line) -> Iterable[Hit | Unreadable]:
        """Return the measurements in `line.text`; none if the line has another format."""
        ...
