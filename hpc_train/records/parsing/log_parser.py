"""Interface of a log parser, the types that it yields, and the state of a parser of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from hpc_train.model.record import Scope
from hpc_train.records.line import Line

# The rank in the prefix of the line or in the file name.
OF_LINE = -1
_PATIENCE = 50


class Hit(msgspec.Struct, frozen=True, gc=False):
    """One measurement in a line.

    `unit` may be empty for the metrics of `model.record.UNITS`. `rank` is only needed if the text
    itself contains a rank. `steps` is the number of steps that the value is the mean of. `variant`
    distinguishes two values of one metric (`in_place`, `max`). Hits with the same parser, metric
    and `once` are one measurement that several ranks print: the first one is used. `node` is only
    needed if the text itself names one.
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
    node: str = ""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A line with damaged measurements: truncated, or mixed with another line."""


class LogParser(Protocol):
    """Reads one kind of log; an object reads one log, line by line, and may have state.

    A class or function that returns a new parser is registered. `literals`: every line that the
    parser searches for contains at least one of them, and only those lines are passed to `read`. A
    literal contains no line end; rare literals are faster. `wants_next` requests the next line
    as well, whatever it contains: a parser sets it at the header of a table and clears it at the
    end.

    `title`, `sample` and `states` are the documentation: the programs that print such logs, a few
    lines of a log, and the scope of each metric in it.
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


class TableState:
    """True from the header of a table to its end, or until too many unrelated lines follow."""

    def __init__(self) -> None:
        self.wanted = False
        self._others = 0

    def begin(self) -> None:
        """Note the head of a table, or one of its rows."""
        self.wanted = True
        self._others = 0

    def end(self) -> None:
        """Note the end of the table."""
        self.wanted = False

    def other(self) -> None:
        """Note a line that does not belong to the table."""
        self._others += 1
        if self._others > _PATIENCE:
            self.wanted = False
