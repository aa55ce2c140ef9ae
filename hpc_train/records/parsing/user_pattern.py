"""Parser of a user's patterns, with their metrics, units and scopes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hpc_train.model.log_selection import PLACES, LogPattern
from hpc_train.model.regex_parts import literal_of
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import OF_LINE, Hit
from hpc_train.records.parsing.single_regex_parser import PatternParser
from hpc_train.timed_regex import TimedPattern

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
        self.states = {
            metric: scope
            for one in reversed(self._patterns)
            for metric, scope in one.states.items()
        }

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
