"""Parser of a user's LogPattern, with its metrics, units and scope."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpc_train.model.log_selection import MOST_TOUCHING, PLACES, LogPattern
from hpc_train.model.regex_analysis import literal_of, touching
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.single_regex_parser import PatternParser

# Before and after the literal. The pattern may be unbounded; if its time grows with the cube
# of the length (`MOST_TOUCHING`), 1,024 characters would take seconds, and 384 take 0.1 s.
_NEAR = (256, 768)
_NEARER = (96, 288)


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
        return self._parser.read(line)
