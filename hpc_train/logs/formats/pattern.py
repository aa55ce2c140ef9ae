"""A parser made of one regular expression: most programs print one kind of line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Protocol

import msgspec

from hpc_train.base.regex import TimedPattern, literal_of
from hpc_train.jobs.log_selection import PLACES, LogPattern
from hpc_train.logs.formats.base import OF_LINE, Hit
from hpc_train.logs.formats.number import COUNTABLE, number, scaled
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope


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


# Parser of a user's patterns, with their metrics, units and scopes.

# So much of a long line is searched, before and after the literal.
_BEFORE, _AFTER = 256, 768
# Without a number, a value of these would be that of the whole run.
_OF_STEPS = frozenset({"step_time", "epoch_time", "samples_per_second", "tokens_per_second"})


class UserPattern:
    """Parser of one LogPattern, which was checked."""

    title = "a user-defined pattern"
    wants_next = False

    def __init__(self, pattern: LogPattern) -> None:
        self._compiled = compiled = TimedPattern(pattern.regex)
        literal = pattern.literal or literal_of(pattern.regex)
        metrics = (name for name in compiled.groupindex if name not in PLACES)
        self.sample = pattern.regex
        self.too_slow: dict[str, int] = {}
        self._has_step = "step" in compiled.groupindex
        self._lines: dict[int | None, int] = {}
        self.literals = (literal.encode(),)
        self._parser = PatternParser(
            title=self.title,
            literals=self.literals,
            pattern=compiled,
            states=dict.fromkeys(metrics, pattern.scope),
            sample=pattern.regex,
            scale=pattern.scale,
            units=pattern.units,
        )

    def read(self, line: Line) -> Iterable[Hit]:
        """Yield the metrics of the first match, near the literal."""
        raw = line.raw
        if len(raw) > _BEFORE + _AFTER:
            at = raw.find(self.literals[0])
            near = raw[max(0, at - _BEFORE) : at + _AFTER]
            line = Line(near, line.number, line.file_rank)
        hits = self._parser.read(line)
        if self._compiled.is_slow and not self.too_slow:
            self.too_slow = {self.sample: line.number}
        return self._numbered(hits, line)

    def _numbered(self, hits: list[Hit], line: Line) -> Iterator[Hit]:
        """Number the values of a step or an epoch by their lines, if the pattern has no `step`."""
        if self._has_step or not any(hit.metric in _OF_STEPS for hit in hits):
            yield from hits
            return
        rank = line.rank if hits[0].rank == OF_LINE else hits[0].rank
        self._lines[rank] = step = self._lines.get(rank, 0) + 1
        for hit in hits:
            yield msgspec.structs.replace(hit, step=step)


class UserPatterns:
    """Parser of all patterns of a user: each reads each line, the first one that has a metric."""

    title = "user-defined patterns"
    wants_next = False

    def __init__(self, patterns: Sequence[LogPattern]) -> None:
        self._patterns = [UserPattern(pattern) for pattern in patterns]
        self.literals = tuple(dict.fromkeys(one.literals[0] for one in self._patterns))
        self.sample = "\n".join(one.sample for one in self._patterns)

    @property
    def too_slow(self) -> dict[str, int]:
        """The patterns that were left out, and the line that took too long."""
        return {regex: at for one in self._patterns for regex, at in one.too_slow.items()}

    def read(self, line: Line) -> Iterable[Hit]:
        """Yield the metrics of the first match of each pattern."""
        seen: set[str] = set()
        for pattern in self._patterns:
            hits = [hit for hit in pattern.read(line) if hit.metric not in seen]
            seen |= {hit.metric for hit in hits}
            yield from hits
