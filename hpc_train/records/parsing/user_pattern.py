"""Parser of a user's patterns, with their metrics, units and scopes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hpc_train.model.log_selection import MOST_TOUCHING, PLACES, LogPattern
from hpc_train.model.regex_analysis import literal_of, touching
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import OF_LINE, Hit
from hpc_train.records.parsing.single_regex_parser import PatternParser

# Before and after the literal. The pattern may be unbounded; if its time grows with the cube
# of the length (`MOST_TOUCHING`), 1,024 characters would take seconds, and 384 take 0.1 s.
_NEAR = (256, 768)
_NEARER = (96, 288)
# Without a number, a value of these would be that of the whole run.
_OF_STEPS = frozenset({"step_time", "epoch_time", "samples_per_second", "tokens_per_second"})


class UserPattern:
    """Parser of one LogPattern, which was checked."""

    title = "a user-defined pattern"
    wants_next = False

    def __init__(self, pattern: LogPattern) -> None:
        compiled = re.compile(pattern.regex)
        slow = len(touching(pattern.regex)) >= MOST_TOUCHING
        self._before, self._after = _NEARER if slow else _NEAR
        literal = pattern.literal or literal_of(pattern.regex)
        metrics = (name for name in compiled.groupindex if name not in PLACES)
        self.sample = pattern.regex
        self._has_step = "step" in compiled.groupindex
        self._lines: dict[int | None, int] = {}
        self.literals = (literal.encode(),)
        self.states = dict.fromkeys(metrics, pattern.scope)
        self._parser = PatternParser(
            title=self.title,
            literals=self.literals,
            pattern=compiled,
            states=self.states,
            sample=pattern.regex,
            scale=pattern.scale,
            units=pattern.units,
        )

    def read(self, line: Line) -> Iterable[Hit]:
        """Yield the metrics of the first match, near the literal."""
        raw = line.raw
        if len(raw) > self._before + self._after:
            at = raw.find(self.literals[0])
            near = raw[max(0, at - self._before) : at + self._after]
            line = Line(near, line.number, line.file_rank)
        return self._numbered(self._parser.read(line), line)

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
        self.states = {
            metric: scope
            for one in reversed(self._patterns)
            for metric, scope in one.states.items()
        }

    def read(self, line: Line) -> Iterable[Hit]:
        """Yield the metrics of the first match of each pattern."""
        seen: set[str] = set()
        for pattern in self._patterns:
            hits = [hit for hit in pattern.read(line) if hit.metric not in seen]
            seen |= {hit.metric for hit in hits}
            yield from hits
