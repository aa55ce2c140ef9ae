"""Forms: a parser declares a form so that many similar lines are read at once.

A parser opts in with `form`, the pattern of a whole line (`line_form`), and `read_form`, which gets
the groups of all lines of a run as columns, and returns what `read` would return of these lines, as
columns. A form without groups is that of lines without measurements: `read_form` is not called.
Any other line ends the run and is read by `read`, so a form need only match most lines of a log.
It matches ASCII only, and no control characters except tab and line end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hpc_train.model.record import Scope
from hpc_train.records.parsing.log_parser import OF_LINE


class HitColumn(NamedTuple):
    """A measurement in all lines of a run, or in some (None in the others); see `Hit`."""

    metric: str
    scope: Scope
    value: Sequence[float | None]
    step: Sequence[int | None]
    steps: Sequence[int] | None = None
    rank: int | None = OF_LINE
    unit: str = ""


class FormReader(Protocol):
    """A parser for logs in which most lines have one form."""

    @property
    def form(self) -> re.Pattern[str] | None:
        """The form of a line, if there is one now; it holds one literal of the parser.

        While the parser wants the next line, the form may hold none.
        """
        ...

    def read_form(self, *cells: Sequence[str | None]) -> Sequence[HitColumn]:
        """Return the measurements in the groups of the matches; `wants_next` stays as it is."""
        ...


def floats(cells: Sequence[str | None]) -> list[float | None]:
    """Return the numbers in the cells of a group that matches only finite decimal numbers."""
    return [None if cell is None else float(cell) for cell in cells]


def line_form(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a whole line, which may begin with the label of srun."""
    return re.compile(rf"(?:(\d{{1,7}}): )?{pattern}\r?\n", re.ASCII)
