"""Parsers made of one regular expression: those of plug-ins, of `--pattern` and of study files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from hpc_train.base.errors import SpecError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.base.regex import TimedPattern, literal_of
from hpc_train.jobs.log_selection import PLACES, LogPattern, StatedScope, check_pattern
from hpc_train.logs.formats.base import OF_LINE, Hit, Measure, Unreadable
from hpc_train.logs.formats.formats import FormatEntry, FormatParser, LineEntry, Shape
from hpc_train.logs.line import Line
from hpc_train.logs.record import FACTORS, Scope, heading


@dataclass(kw_only=True)
class PatternParser:
    """Reads each named group of the first match as a metric; `step` and `rank` are its position.

    A group that did not match, or contains no finite number, is ignored. `scale` multiplies values
    in other units than those of `base.metrics.UNITS` (`{"step_time": 1e-3}` for ms).
    """

    title: str
    literals: tuple[bytes, ...]
    pattern: re.Pattern[str] | TimedPattern
    states: Mapping[str, Scope]
    sample: str
    scale: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    wants_next: bool = False

    def __post_init__(self) -> None:
        """Describe the pattern as a format of one line."""
        scale, units = self.scale, self.units
        values = {
            name: Measure(scope=scope, scale=scale.get(name, 1.0), unit=units.get(name, ""))
            for name, scope in self.states.items()
        }
        literals = tuple(literal.decode() for literal in self.literals)
        entry = FormatEntry(title=self.title, literals=literals, sample=self.sample)
        self._shape = Shape(LineEntry(pattern="", values=values), lambda _: self.pattern)
        self._format = FormatParser(entry, ((), None))

    def __call__(self) -> PatternParser:
        """Return itself: it has no state, so that one object reads all logs."""
        return self

    def read(self, line: Line) -> list[Hit | Unreadable]:
        """Return the metrics of the first match."""
        text, pattern = line.text, self.pattern
        if isinstance(pattern, TimedPattern):
            match = pattern.search_near(text, (literal.decode() for literal in self.literals))
        else:
            match = pattern.search(text)
        return self._format.hits(self._shape, match, len(match.string), line) if match else []


# Without a number, a value of these would be that of the whole run.
_OF_STEPS = frozenset({"step_time", "epoch_time", "samples_per_second", "tokens_per_second"})


class UserPattern:
    """Parser of one LogPattern, which was checked."""

    def __init__(self, pattern: LogPattern) -> None:
        self._timed = timed = TimedPattern(pattern.regex)
        metrics = (name for name in timed.groupindex if name not in PLACES)
        self.too_slow: dict[str, int] = {}
        self._lines: dict[int | None, int] = {}
        self.sample = pattern.regex
        self.literals = ((pattern.literal or literal_of(pattern.regex)).encode(),)
        self._parser = PatternParser(
            title="a user-defined pattern",
            literals=self.literals,
            pattern=timed,
            states=dict.fromkeys(metrics, pattern.scope),
            sample=pattern.regex,
            scale=pattern.scale,
            units=pattern.units,
        )

    def read(self, line: Line) -> list[Hit]:
        """Return the metrics of the first match, near the literal.

        Values of a step or an epoch are numbered by their lines, if the pattern has no `step`.
        """
        hits = [hit for hit in self._parser.read(line) if isinstance(hit, Hit)]
        if self._timed.is_slow and not self.too_slow:
            self.too_slow = {self.sample: line.number}
        if "step" in self._timed.groupindex or not any(hit.metric in _OF_STEPS for hit in hits):
            return hits
        rank = line.rank if hits[0].rank == OF_LINE else hits[0].rank
        self._lines[rank] = step = self._lines.get(rank, 0) + 1
        return [msgspec.structs.replace(hit, step=step) for hit in hits]


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


# `--pattern REGEX` and `--pattern NAME=REGEX` -> patterns of log lines.

_NAMED = re.compile(r"([A-Za-z_]\w{0,40})(?: ?\[([^\]\n]{1,12})\])?=(.+)", re.DOTALL)
_PARENTHESIS = re.compile(r"\((?!\?)")
_LONGEST = 2000
_WHERE = "--pattern"


def own_patterns(texts: Sequence[str], scope: StatedScope) -> tuple[LogPattern, ...]:
    r"""Return a pattern for each text: `took (?P<step_time>[\d.]+)`, `step_time[ms]=took ([\d.]+)`.

    In the second form the only group without a name is the metric, in the given unit.

    Raises:
        SpecError: a regex is invalid, or names no metric or an unknown one; an unknown unit.
    """
    patterns = tuple(_pattern(text, scope) for text in texts)
    for pattern in patterns:
        check_pattern(pattern, _WHERE)
    return patterns


def _pattern(text: str, scope: StatedScope) -> LogPattern:
    match = _NAMED.fullmatch(text)
    if match is None or _named_groups(match[3]) - PLACES:
        return LogPattern(regex=text, scope=scope)
    name, unit, regex = match.groups()
    if name not in UNITS:
        raise SpecError(
            f"{_WHERE}: {name!r} is not a metric{nearest(name, UNITS)}",
            f"allowed: {', '.join(UNITS)}",
        )
    found, known = heading(f"{name} [{unit}]" if unit else name), UNITS[name]
    if found.name != name:
        key = "fraction" if name in ("accuracy", "mfu") else known
        units = ", ".join(FACTORS.get(key, [known]))
        raise SpecError(f"{_WHERE}: {name} is in {known}, not in {unit}", f"allowed units: {units}")
    factor = found.factor if unit else 1.0
    scale = {} if factor == 1 else {name: factor}
    return LogPattern(regex=_with_name(regex, name), scope=scope, scale=scale)


def _named_groups(regex: str) -> frozenset[str]:
    try:
        return frozenset(re.compile(regex).groupindex)
    except (re.error, OverflowError, RecursionError):
        # Reported by `check_pattern`.
        return frozenset()


def _with_name(regex: str, name: str) -> str:
    """Return the regex with a name for its only group without one.

    Which parentheses begin a group, `re` decides: within a class of characters they do not.
    """
    places = [match.end() for match in _PARENTHESIS.finditer(regex[:_LONGEST])]
    named = [f"{regex[:place]}?P<{name}>{regex[place:]}" for place in places]
    groups = [text for text in named if name in _named_groups(text)]
    if len(groups) != 1:
        raise SpecError(
            f"{_WHERE}: {name}: the regex has {len(groups)} groups without a name, not one",
            r"put the number in parentheses, and nothing else: step_time=took ([\d.]+) s",
        )
    return groups[0]
