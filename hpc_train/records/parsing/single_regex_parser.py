"""A parser made of one regular expression: most programs print one kind of line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Protocol

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import OF_LINE, Hit
from hpc_train.records.parsing.printed_numbers import COUNTABLE, number, scaled


class Searched(Protocol):
    """A regular expression, or one with a time limit."""

    def search(self, text: str, /) -> re.Match[str] | None:
        """Return the first match."""
        ...


@dataclass(frozen=True, kw_only=True)
class PatternParser:
    """Reads each named group as a metric, except `step` and `rank`, which are its position.

    A group that did not match, or contains no finite number, is ignored. `scale` multiplies values
    in other units than those of `model.record.UNITS` (`{"step_time": 1e-3}` for ms).
    """

    title: str
    literals: tuple[bytes, ...]
    pattern: Searched
    states: Mapping[str, Scope]
    sample: str
    scale: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    wants_next: bool = False

    def __call__(self) -> PatternParser:
        """Return itself: it has no state, so that one object reads all logs."""
        return self

    def read(self, line: Line) -> list[Hit]:
        """Return the metrics of the first match."""
        match = self.pattern.search(line.text)
        if match is None:
            return []
        found = match.groupdict()
        step = _whole(found.get("step"))
        rank = _whole(found["rank"]) if "rank" in found else OF_LINE
        hits = []
        for metric, scope, scale, unit in self._metrics:
            value = _value(found.get(metric), scale)
            if value is not None:
                hits.append(Hit(metric, value, scope, step, rank, unit))
        return hits

    @cached_property
    def _metrics(self) -> tuple[tuple[str, Scope, float, str], ...]:
        """The possible metrics of a line: metric, scope, factor, unit."""
        return tuple(
            (metric, scope, self.scale.get(metric, 1.0), self.units.get(metric, ""))
            for metric, scope in self.states.items()
        )


def _value(text: str | None, scale: float) -> float | None:
    value = None if text is None else number(text)
    if value is not None and scale != 1.0:
        value = scaled(value, scale)
    return value if value is not None and isfinite(value) else None


def _whole(text: str | None) -> int | None:
    value = None if text is None else number(text)
    return None if value is None or abs(value) >= COUNTABLE else int(value)
