"""Formats that are data: `data/formats.yaml` describes each parser by a few patterns.

The attribute with the name of a format is the factory of its parser: `formats.nanogpt()`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache, cached_property, partial
from math import ceil, floor, isfinite
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, field

from hpc_train.base.data_folders import data_file
from hpc_train.base.decode import decode
from hpc_train.base.errors import HpcTrainError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.base.value import Sourced, Value
from hpc_train.base.yamlfile import read
from hpc_train.logs.formats.base import OF_LINE, Hit, Intervals, Unreadable
from hpc_train.logs.formats.number import NUMBER, VALUE, number, scaled
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

_WORDS = {"N": NUMBER, "V": f"(?:{VALUE[1:]}"}
Regex = str | tuple[str, ...]


class Measure(Value, frozen=True, kw_only=True):
    """What a group or key states; `metric` is its own name unless given.

    `mean`: over the steps since the last line, or since the start. `nonzero`: 0 is no measurement.
    `beside`, `unless`: another key that the line has to hold, or must not hold. `by`: stated is
    the only whole number by which the value can be that of another group, as both are rounded.
    """

    scope: Scope
    metric: str = ""
    scale: float = 1.0
    variant: str = ""
    mean: Literal["", "since_last", "since_start"] = ""
    once: str = ""
    nonzero: bool = False
    beside: str = ""
    unless: str = ""
    by: str = ""


class LineEntry(Value, frozen=True, kw_only=True):
    """A kind of line: its values are groups, or the `key` and `value` of `each` field behind it.

    Its step is the group `step`, or `done` of the `total` steps of an `epoch`; a line without one
    has the step of the last line that `opens` a block (`inside`: there has to be one). `next`: the
    line after it is read, whatever it contains. `units`: factors by the group `unit`. A line is
    damaged that states no value of the name `needs`, or in which `cut` is found. A pattern that
    begins with `^` has no `|` outside of brackets.
    """

    pattern: Regex
    each: Regex = ""
    cut: Regex = ""
    needs: str = ""
    values: dict[str, Measure] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)
    first_step: int = 1
    first_epoch: int = 0
    opens: bool = False
    inside: bool = False
    next: bool = False


class FormatEntry(Value, frozen=True, kw_only=True):
    """A format as it is written in the file; of its `lines`, the first that matches is read.

    `words` are parts of patterns, `{WORD}`; `{N}` is a number, `{V}` also one that is not finite.
    `damaged`: found in a line that none of them matches, but should. `blank`: one at the end of a
    line counts.
    """

    title: str
    literals: Annotated[tuple[Annotated[str, Meta(min_length=4)], ...], Meta(min_length=1)]
    sample: str
    lines: Annotated[tuple[LineEntry, ...], Meta(min_length=1)]
    words: dict[str, str] = field(default_factory=dict)
    damaged: Regex = ""
    blank: bool = False


class FormatFile(Value, frozen=True, kw_only=True):
    """The content of the file: name -> format."""

    schema: Literal[1]
    formats: dict[str, FormatEntry]


class _Fact(NamedTuple):
    """What a text states: that of a group, or of a key; `rules`: it may not apply."""

    group: int
    metric: str
    scope: Scope
    scale: float
    mean: str
    variant: str
    once: str
    rules: Measure | None


class _Shape:
    """A kind of line, compiled."""

    def __init__(
        self,
        entry: LineEntry,
        pattern: re.Pattern[str],
        each: re.Pattern[str] | None,
        cut: re.Pattern[str] | None,
    ) -> None:
        self.entry, self.pattern, self.each, self.cut = entry, pattern, each, cut
        here, groups = (each or pattern).groupindex, pattern.groupindex
        self.keyed, self.ranked = "key" in here, "rank" in groups
        self.step_named, self.counted = "step" in groups, "done" in groups
        self.placed = entry.opens or self.step_named or self.counted
        self.in_epoch, self.anchored = "epoch" in groups, pattern.pattern.startswith("^")
        self.by = {here[name]: here[one.by] for name, one in entry.values.items() if one.by}
        self.facts = {}
        for name, one in entry.values.items():
            rules = one if one.nonzero or one.beside or one.unless else None
            self.facts[name] = _Fact(
                *(here.get(name, 0) - 1, one.metric or name, one.scope, one.scale),
                *(one.mean, one.variant, one.once, rules),
            )

    def matches(self, text: str) -> list[re.Match[str]]:
        """Return what is found in a line: ranks may write several on one."""
        if not self.anchored:
            return [*self.pattern.finditer(text)]
        match = self.pattern.match(text)
        return [match] if match else []

    def step(self, match: re.Match[str]) -> int | None:
        """Return the number of the step within the run, if the line states it."""
        if self.step_named:
            step = match["step"]
            return None if step is None else int(step) + 1 - self.entry.first_step
        if not self.counted:
            return None
        if not self.in_epoch or match["epoch"] is None:
            return int(match["done"])
        epoch, done, total = match.group("epoch", "done", "total")
        before = int(epoch) - self.entry.first_epoch
        return None if total is None else before * int(total) + int(done)

    def stated(self, match: re.Match[str], end: int) -> list[tuple[_Fact, str]]:
        """Return the texts of a line up to `end`: groups in the order of the file, or keys."""
        facts = self.facts
        if not self.keyed:
            texts: Sequence[str | None] = match.groups()
            if self.each is not None:
                # The first of each group.
                found = self.each.findall(match.string, match.end(), end)
                texts = [next(filter(None, column), None) for column in zip(*found, strict=True)]
                if not texts:
                    return []
            for group, under in self.by.items():
                texts = [
                    *texts[: group - 1],
                    _times(texts[group - 1], texts[under - 1]),
                    *texts[group:],
                ]
            return [(fact, text) for fact in facts.values() if (text := texts[fact.group])]
        if self.each is None:
            pairs = {match["key"]: match["value"]}
        else:
            pairs = dict(self.each.findall(match.string, match.end(), end))
        return [
            (facts[key], text)
            for key, text in pairs.items()
            if key in facts and _applies(facts[key].rules, text, pairs)
        ]


def _applies(rules: Measure | None, text: str, pairs: Mapping[str, str]) -> bool:
    """Whether a value is a measurement, beside the other fields of its line."""
    if rules is None:
        return True
    if rules.unless in pairs or (rules.nonzero and not number(text)):
        return False
    return not rules.beside or rules.beside in pairs


def _times(text: str | None, other: str | None) -> str:
    """Return the only whole number by which one rounded value may be that of another."""
    if not text or not other:
        return ""
    over, under = Decimal(text), Decimal(other)
    half, half_under = (
        Decimal(1).scaleb(int(one.as_tuple().exponent)) / 2 for one in (over, under)
    )
    if under <= half_under:
        return ""
    least = ceil((over - half) / (under + half_under))
    return f"{least}" if least == floor((over + half) / (under - half_under)) else ""


class FormatParser:
    """Parser of one log; remembers the step of an open block, and the last one of each rank."""

    def __init__(self, name: str) -> None:
        self._name, entry = name, _file().value.formats[name]
        self.title, self.sample = entry.title, entry.sample
        self.literals = tuple(literal.encode() for literal in entry.literals)
        self.wants_next = False
        self._blank = entry.blank
        means = {one.mean for line in entry.lines for one in line.values.values()}
        self._counts = "since_last" in means
        self._step: int | None = None
        self._steps = 1
        self._intervals = Intervals()

    # Most of the formats are never needed for a log.
    @cached_property
    def _compiled(self) -> tuple[tuple[_Shape, ...], re.Pattern[str] | None]:
        return _compiled(self._name)

    def read(self, line: Line) -> list[Hit | Unreadable]:
        """Return the values of the first kind of line that matches, of each match."""
        shapes, damaged = self._compiled
        text = f"{line.text} " if self._blank and line.raw.endswith(b" ") else line.text
        self.wants_next = False
        found: list[Hit | Unreadable] = []
        for shape in shapes:
            matches = shape.matches(text)
            if len(matches) == 1:
                return self._hits(shape, matches[0], len(text), line)
            if matches:
                for match, after in zip(matches, [*matches[1:], None], strict=True):
                    end = len(text) if after is None else after.start()
                    found += self._hits(shape, match, end, line)
                return found
        return [Unreadable()] if damaged and damaged.search(text) else []

    def _hits(
        self, shape: _Shape, match: re.Match[str], end: int, line: Line
    ) -> list[Hit | Unreadable]:
        """Return what one match states, up to `end` of its line."""
        entry = shape.entry
        step, steps = self._place(shape, match, line) if shape.placed else (self._step, self._steps)
        unit = entry.units.get(match["unit"] or "") if entry.units else 1.0
        if unit is None or (entry.inside and step is None):
            return []
        rank = int(match["rank"]) if shape.ranked and match["rank"] else OF_LINE
        stated = shape.stated(match, end)
        if entry.needs and all(fact is not shape.facts[entry.needs] for fact, _ in stated):
            return [Unreadable()]
        hits: list[Hit | Unreadable] = []
        for (_, metric, scope, scale, mean, variant, once, _), text in stated:
            value = number(text)
            if value is not None and scale * unit != 1.0:
                value = scaled(value, scale * unit)
            if value is not None and isfinite(value):
                of = 1 if not mean else steps if mean == "since_last" else max(1, step or 0)
                hits.append(Hit(metric, value, scope, step, rank, "", of, None, variant, once))
        if shape.cut and shape.cut.search(match.string, match.end(), end):
            hits.append(Unreadable())
        return hits

    def _place(self, shape: _Shape, match: re.Match[str], line: Line) -> tuple[int | None, int]:
        """Return the step of a line, and the steps since the last one of its rank."""
        step, steps = shape.step(match), 1
        if self._counts and step is not None:
            steps = self._intervals.since(line, step)
        if shape.entry.opens:
            self._step, self._steps, self.wants_next = step, steps, shape.entry.next
        return step, steps


class FormatError(HpcTrainError):
    """A file of formats has a mistake."""


def read_formats(path: Path) -> Sourced[FormatFile]:
    """Return a file of formats.

    Raises:
        FormatError: with file:line; it is no YAML, or not of its type.
    """
    document = read(path, FormatError)
    return decode(document.data, FormatFile, document.origins, FormatError)


def compiled(
    file: Sourced[FormatFile], name: str
) -> tuple[tuple[_Shape, ...], re.Pattern[str] | None]:
    """Return the kinds of lines of a format, and what is found in its damaged lines.

    Raises:
        FormatError: with file:line; a pattern is no regular expression, or lacks a group; a metric
            has no unit.
    """
    entry = file.value.formats[name]

    def wrong(key: str, text: str) -> FormatError:
        key = f"formats.{name}.{key}"
        return FormatError(f"{file.near(key)}: {key}: {text}")

    def regex(parts: Regex, key: str) -> re.Pattern[str]:
        text = parts if isinstance(parts, str) else "".join(parts)
        for word, pattern in (*reversed(entry.words.items()), *_WORDS.items()):
            text = text.replace(f"{{{word}}}", pattern)
        try:
            return re.compile(text)
        except re.error as error:
            raise wrong(key, f"no regular expression: {error}") from None

    shapes = []
    for at, line in enumerate(entry.lines):
        where = f"lines.{at}"
        shape = _Shape(
            line,
            regex(line.pattern, f"{where}.pattern"),
            regex(line.each, f"{where}.each") if line.each else None,
            regex(line.cut, f"{where}.cut") if line.cut else None,
        )
        for value, fact in shape.facts.items():
            if fact.group < 0 and not shape.keyed:
                raise wrong(f"{where}.values.{value}", "the pattern has no such group")
            if fact.metric not in UNITS:
                near = nearest(fact.metric, UNITS)
                raise wrong(f"{where}.values.{value}", f"no metric {fact.metric!r}{near}")
        shapes.append(shape)
    return tuple(shapes), regex(entry.damaged, "damaged") if entry.damaged else None


@cache
def _file() -> Sourced[FormatFile]:
    return read_formats(data_file("formats.yaml"))


@cache
def _compiled(name: str) -> tuple[tuple[_Shape, ...], re.Pattern[str] | None]:
    return compiled(_file(), name)


def __getattr__(name: str) -> Callable[[], FormatParser]:
    """Return the factory of a parser."""
    if name.startswith("_") or name not in _file().value.formats:
        raise AttributeError(name)
    return partial(FormatParser, name)
