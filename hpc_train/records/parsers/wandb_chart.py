"""The CSV export of a chart of Weights & Biases: `"Step","RUN - METRIC","RUN - METRIC__MIN", ...`.

The metrics are those of `parsing.logged_metrics`. The columns `__MIN` and `__MAX` are the bounds of
the drawn line and are not read. A file with the steps of several runs is not read, because a log is
one run.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.logged_metrics import LoggedMetric, logged_metric
from hpc_train.records.parsing.printed_numbers import countable, number

_COLUMN = re.compile(r"([^\n]{1,300}) - ([^\n]{1,200}?)(__MIN|__MAX)?")
_STEPS = ("step", "_step", "global_step", "trainer/global_step", "train/global_step")
_LONGEST = 1 << 20


class WandbChart:
    """Parser of such a file; remembers the columns."""

    title = "a chart of Weights & Biases, exported as CSV"
    literals = (b"__MIN",)
    sample = (
        '"Step","calm-sea-7 - train/loss","calm-sea-7 - train/loss__MIN",'
        '"calm-sea-7 - train/loss__MAX"\n"10","2.25","2.25","2.25"\n'
    )
    states: Mapping[str, Scope] = {"loss": "per_rank"}

    def __init__(self) -> None:
        self.wants_next = False
        self._width = 0
        self._columns: list[tuple[int, LoggedMetric]] = []
        self._has_steps = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the cells of a row with a known metric."""
        cells = _cells(line.text)
        charted = charted_columns(cells)
        if charted:
            self._begin(cells, charted)
        elif self.wants_next and len(cells) == self._width:
            yield from self._hits(cells)
        elif line.text:
            self.wants_next = False

    def _begin(self, names: list[str], charted: Mapping[str, Mapping[str, int]]) -> None:
        self._width, self._has_steps = len(names), names[0].lower() in _STEPS
        (places, *others) = charted.values()
        named = ((place, logged_metric(name)) for name, place in places.items())
        self._columns = [(place, metric) for place, metric in named if metric is not None]
        self.wants_next = not others and bool(self._columns)

    def _hits(self, cells: list[str]) -> Iterator[Hit]:
        step = countable(number(cells[0])) if self._has_steps else None
        step = None if step is None or step < 0 else step
        for place, metric in self._columns:
            logged = number(cells[place]) if cells[place] else None
            value = None if logged is None else metric.value(logged)
            if value is not None:
                yield Hit(metric.metric, value, metric.scope, step)


def charted_columns(names: list[str]) -> dict[str, dict[str, int]]:
    """Return the columns of each run in a chart by the name of their metric; none of other tables.

    Every column but the first is one of a run, and some are bounds.
    """
    found = [_COLUMN.fullmatch(name) for name in names[1:]]
    matches = [match for match in found if match is not None]
    if len(matches) < len(found) or not any(match[3] for match in matches):
        return {}
    charted: dict[str, dict[str, int]] = {}
    for place, match in enumerate(matches, start=1):
        if not match[3]:
            charted.setdefault(match[1], {})[match[2]] = place
    return charted


def charted_runs(header: str) -> tuple[str, ...]:
    """Return the runs in the header of a chart."""
    return tuple(charted_columns(_cells(header)))


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text[:_LONGEST]]), [])
    except csv.Error:
        return []
