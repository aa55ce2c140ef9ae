"""Formats of logs: `data/formats.yaml` and a site's `formats/*.yaml` describe each parser.

Most are a few patterns; the others name their code. The attribute with the name of a format of the
package is the factory of its parser: `formats.nanogpt()`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, field
from msgspec.structs import replace

from hpc_train.base.data_folders import data_file, site_folders
from hpc_train.base.decode import decode
from hpc_train.base.errors import HpcTrainError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.base.regex import TimedPattern
from hpc_train.base.registry import BUILT_IN, load, resolve
from hpc_train.base.values import Sourced, Value
from hpc_train.base.yamlfile import read
from hpc_train.logs.formats.base import (
    CLOCK,
    NUMBER,
    OF_LINE,
    VALUE,
    Coded,
    Hit,
    Intervals,
    LogParser,
    Measure,
    RunningStep,
    Unreadable,
    countable,
    number,
    scaled,
    seconds,
)
from hpc_train.logs.line import Line

_WORDS = {"N": NUMBER, "V": f"(?:{VALUE[1:]}", "CLOCK": CLOCK}
_SIZED = ("algbw", "busbw", "latency")
Regex = str | tuple[str, ...]
Searched = re.Pattern[str] | TimedPattern


class LineEntry(Value, frozen=True, kw_only=True):
    """A kind of line: its values are groups, or the `key` and `value` of `each` field behind it.

    Its step is the group `step`; `done` of the `total` steps of an `epoch`; or `batch`, which is
    counted on over the epochs of a rank. A line without one has the step of the last line that
    `opens` a block (`inside`: there has to be one). `next`: the line after it is read, whatever it
    contains. `units`: factors by the group `unit`. `size` is the size of the messages of this line
    and the next ones, times `size_scale` [B]. A line is damaged that states no value of the name
    `needs`, or in which `cut` is found. A pattern that begins with `^` has no `|` outside of
    brackets.
    """

    pattern: Regex
    each: Regex = ""
    cut: Regex = ""
    needs: str = ""
    values: dict[str, Measure] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)
    first_step: int = 1
    first_epoch: int = 0
    size_scale: float = 1.0
    opens: bool = False
    inside: bool = False
    next: bool = False


class FormatEntry(Value, frozen=True, kw_only=True):
    """A format as it is written in the file; of its `lines`, the first that matches is read.

    `words` are parts of patterns, `{WORD}`; `{N}` is a number, `{V}` also one that is not finite,
    `{CLOCK}` a time.
    `damaged`: found in a line that none of them matches, but should. `blank`: one at the end of a
    line counts. `code`: the module and class that read it, instead of `lines`, by the keys in
    `values`, or in those of another format.
    """

    title: str
    literals: Annotated[tuple[Annotated[str, Meta(min_length=2)], ...], Meta(min_length=1)]
    sample: str
    lines: tuple[LineEntry, ...] = ()
    words: dict[str, str] = field(default_factory=dict)
    damaged: Regex = ""
    blank: bool = False
    code: str = ""
    values: dict[str, Measure] = field(default_factory=dict)
    values_of: str = ""


class FormatFile(Value, frozen=True, kw_only=True):
    """The content of a file: name -> format."""

    schema: Literal[1]
    formats: dict[str, FormatEntry]


# What a text states, that of a group or of a key.
_Fact = tuple[int, Measure]


class Shape:
    """A kind of line, compiled."""

    def __init__(self, entry: LineEntry, compiled: Callable[[Regex], Searched]) -> None:
        self.entry, self.pattern = entry, compiled(entry.pattern)
        self.each = compiled(entry.each) if entry.each else None
        self.cut = compiled(entry.cut) if entry.cut else None
        here, groups = (self.each or self.pattern).groupindex, self.pattern.groupindex
        self.keyed, self.groups = "key" in here, frozenset(groups)
        self.placed = entry.opens or bool(self.groups & {"step", "done", "batch", "epoch"})
        self.anchored = "".join(entry.pattern).startswith("^")
        self.parts = [
            (here[name], here[one.over]) for name, one in entry.values.items() if one.over
        ]
        self.rules = {
            name: one
            for name, one in entry.values.items()
            if one.nonzero or one.beside or one.unless
        }
        self.facts = {
            name: (here.get(name, 0) - 1, one) for name, one in _named(entry.values).items()
        }

    def matches(self, text: str) -> list[re.Match[str]]:
        """Return what is found in a line: ranks may write several on one."""
        if not self.anchored or isinstance(self.pattern, TimedPattern):
            return [*self.pattern.finditer(text)]
        match = self.pattern.match(text)
        return [match] if match else []

    def stated(self, match: re.Match[str], end: int) -> list[tuple[_Fact, str]]:
        """Return the texts of a line up to `end`: groups in the order of the file, or keys."""
        facts, each = self.facts, self.each
        found: list[Any] = []
        if isinstance(each, TimedPattern):
            found = [one.groups("") for one in each.finditer(match.string, match.end(), end)]
        elif each is not None:
            found = each.findall(match.string, match.end(), end)
        if not self.keyed:
            texts: list[str | None] = [*match.groups()]
            if each is not None:
                # The first of each group.
                texts = [next(filter(None, column), None) for column in zip(*found, strict=True)]
                if not texts:
                    return []
            for group, under in self.parts:
                texts[group - 1] = _part(texts[group - 1], texts[under - 1])
            return [(fact, text) for fact in facts.values() if (text := texts[fact[0]])]
        pairs, rules = {match["key"]: match["value"]} if each is None else dict(found), self.rules
        if not rules:
            return [(facts[key], pairs[key]) for key in pairs if key in facts]
        return [
            (facts[key], text)
            for key, text in pairs.items()
            if key in facts and (key not in rules or _applies(rules[key], text, pairs))
        ]


def _named(values: Mapping[str, Measure]) -> dict[str, Measure]:
    """Return what each key states, with the name of its metric."""
    return {name: replace(one, metric=one.metric or name) for name, one in values.items()}


def _applies(rules: Measure, text: str, pairs: Mapping[str, str]) -> bool:
    """Whether a value is a measurement, beside the other fields of its line."""
    if rules.unless in pairs or (rules.nonzero and not number(text)):
        return False
    return not rules.beside or rules.beside in pairs


def _part(text: str | None, other: str | None) -> str:
    """Return which fraction of another count a count is."""
    part, whole = int(text or 0), int(other or 0)
    return repr(part / whole) if text and 0 <= part <= whole > 0 else ""


Shapes = tuple[tuple[Shape, ...], Searched | None]


class FormatParser:
    """Parser of one log; remembers the step of an open block, and the place of each rank."""

    wants_next = False

    def __init__(self, entry: FormatEntry, shapes: Shapes | Callable[[], Shapes]) -> None:
        self.title, self.sample, self._blank = entry.title, entry.sample, entry.blank
        self.literals = tuple(literal.encode() for literal in entry.literals)
        # Most of the formats are never needed for a log, so that each is compiled late.
        self._shapes = shapes
        means = {one.mean for line in entry.lines for one in line.values.values()}
        self._counts = "since_last" in means
        self._step: int | None = None
        self._steps = 1
        self._size: int | None = None
        self._intervals = Intervals()
        self._epochs: dict[int | None, int] = {}
        self._running: dict[int | None, RunningStep] = {}

    def read(self, line: Line) -> list[Hit | Unreadable]:
        """Return the values of the first kind of line that matches, of each match."""
        if callable(self._shapes):
            self._shapes = self._shapes()
        shapes, damaged = self._shapes
        text = f"{line.text} " if self._blank and line.raw.endswith(b" ") else line.text
        self.wants_next = False
        found: list[Hit | Unreadable] = []
        for shape in shapes:
            matches = shape.matches(text)
            if len(matches) == 1:
                return self.hits(shape, matches[0], len(text), line)
            if matches:
                for match, after in zip(matches, [*matches[1:], None], strict=True):
                    end = len(text) if after is None else after.start()
                    found += self.hits(shape, match, end, line)
                return found
        return [Unreadable()] if damaged and damaged.search(text) else []

    def hits(
        self, shape: Shape, match: re.Match[str], end: int, line: Line
    ) -> list[Hit | Unreadable]:
        """Return what one match states, up to `end` of its line."""
        entry, groups = shape.entry, shape.groups
        rank = int(match["rank"]) if "rank" in groups and match["rank"] else OF_LINE
        who = line.rank if rank == OF_LINE else rank
        step, steps = self._step, self._steps
        if shape.placed:
            step, steps = self._place(shape, match, line, who)
        unit = entry.units.get(match["unit"] or "") if entry.units else 1.0
        if "size" in groups and match["size"]:
            self._size = countable(float(match["size"]) * entry.size_scale)
        if unit is None or (entry.inside and step is None):
            return []
        stated = shape.stated(match, end)
        if entry.needs and all(fact is not shape.facts[entry.needs] for fact, _ in stated):
            return [Unreadable()]
        hits: list[Hit | Unreadable] = []
        for (_, one), text in stated:
            value, of = seconds(text) if ":" in text else number(text), 1
            if one.mean:
                of = steps if one.mean == "since_last" else max(1, step or 0)
            scale = one.scale * unit
            if value is None or (scale != 1.0 and not isfinite(value := scaled(value, scale))):
                continue
            size = self._size if one.metric in _SIZED else None
            at = {"step": step, "epoch": self._epochs.get(who)}.get(one.at)
            hits.append(
                Hit(
                    one.metric,
                    value,
                    one.scope,
                    at,
                    rank,
                    one.unit,
                    of,
                    size,
                    one.variant,
                    one.once,
                )
            )
        if shape.cut and shape.cut.search(match.string, match.end(), end):
            hits.append(Unreadable())
        return hits

    def _place(
        self, shape: Shape, match: re.Match[str], line: Line, who: int | None
    ) -> tuple[int | None, int]:
        """Return the step of a line within the run, and the steps since the rank's last one."""
        entry, groups, steps = shape.entry, shape.groups, 1
        step: int | None = None
        if "epoch" in groups and match["epoch"]:
            self._epochs[who] = int(match["epoch"])
        if "step" in groups:
            stated = match["step"]
            if stated is not None:
                step = int(stated) if stated.isdecimal() else countable(number(stated))
                step = None if step is None else step + 1 - entry.first_step
        elif "batch" in groups:
            running = self._running.setdefault(who, RunningStep())
            batch = int(match["batch"]) + 1 - entry.first_step
            step, steps = running.at(self._epochs.get(who), batch)
        elif "done" in groups:
            step = int(match["done"])
            if "epoch" in groups and match["epoch"] is not None:
                total, before = match["total"], int(match["epoch"]) - entry.first_epoch
                step = None if total is None else before * int(total) + step
        if self._counts and step is not None and "batch" not in groups:
            steps = self._intervals.since(line, step)
        if entry.opens:
            self._step, self._steps, self.wants_next = step, steps, entry.next
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
    file: Sourced[FormatFile], name: str, make: Callable[[str], Searched] = re.compile
) -> Shapes:
    """Return the kinds of lines of a format, and what is found in its damaged lines.

    Raises:
        FormatError: with file:line; a pattern is no regular expression, or lacks a group; a metric
            has no unit.
    """
    entry = file.value.formats[name]

    def wrong(key: str, text: str) -> FormatError:
        key = f"formats.{name}.{key}"
        return FormatError(f"{file.near(key)}: {key}: {text}")

    def regex(parts: Regex, key: str) -> Searched:
        text = parts if isinstance(parts, str) else "".join(parts)
        for word, pattern in (*reversed(entry.words.items()), *_WORDS.items()):
            text = text.replace(f"{{{word}}}", pattern)
        try:
            return make(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise wrong(key, f"no regular expression: {error}") from None

    shapes = []
    for at, line in enumerate(entry.lines):
        where = f"lines.{at}"
        shape = Shape(line, partial(regex, key=f"{where}.pattern"))
        for value, fact in shape.facts.items():
            group, one = fact
            if group < 0 and not shape.keyed:
                raise wrong(f"{where}.values.{value}", "the pattern has no such group")
            if one.metric not in UNITS and not one.unit:
                near = nearest(one.metric, UNITS)
                raise wrong(f"{where}.values.{value}", f"no metric {one.metric!r}{near}")
        shapes.append(shape)
    return tuple(shapes), regex(entry.damaged, "damaged") if entry.damaged else None


def maker(name: str) -> Callable[[], LogParser]:
    """Return the factory of a parser: of the package, of a site's file, or of a plug-in.

    Each log needs a new parser.

    Raises:
        UnknownNameError: no such parser. FormatError: a site's file is wrong, with file:line.
    """
    own = {} if name in BUILT_IN["parsers"] else own_formats()
    return own[name] if name in own else _registered(name)


# Looking up plug-ins takes as long as reading a small file, and each file has new parsers.
@cache
def _registered(name: str) -> Callable[[], LogParser]:
    return cast(Callable[[], LogParser], load("parsers", name))


def own_formats() -> Mapping[str, Callable[[], LogParser]]:
    """Return the formats in `formats/*.yaml` of the folders of the site, the first of a name.

    Raises:
        FormatError: with file:line; a mistake in a file, a name of the package, or a sample without
            a value.
    """
    return _own(tuple(dict.fromkeys(site_folders())))


@lru_cache(maxsize=4)
def _own(folders: Sequence[Path]) -> dict[str, Callable[[], LogParser]]:
    found: dict[str, Callable[[], LogParser]] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("formats/*.yaml"))):
        file = read_formats(path)
        for name, entry in file.value.formats.items():
            shapes = compiled(file, name, TimedPattern)
            parser = partial(FormatParser, entry, shapes)
            place = f"{file.near(f'formats.{name}')}: formats.{name}"
            if name in BUILT_IN["parsers"] or not entry.lines or entry.code:
                raise FormatError(f"{place}: hpctrain has this name, or it has no lines")
            one, lines = parser(), entry.sample.encode().splitlines()
            asked = [raw for raw in lines if any(literal in raw for literal in one.literals)]
            if not any(isinstance(hit, Hit) for raw in asked for hit in one.read(Line(raw))):
                raise FormatError(f"{place}: none of its lines reads a value in the sample")
            found.setdefault(name, parser)
    return found


@cache
def _file() -> Sourced[FormatFile]:
    return read_formats(data_file("formats.yaml"))


@cache
def _compiled(name: str) -> Shapes:
    return compiled(_file(), name)


def __getattr__(name: str) -> Callable[[], LogParser]:
    """Return the factory of a parser of the package."""
    entry = None if name.startswith("_") else _file().value.formats.get(name)
    if entry is None:
        raise AttributeError(name)
    if not entry.code:
        return partial(FormatParser, entry, partial(_compiled, name))
    return partial(_coded, entry)


def _coded(entry: FormatEntry) -> LogParser:
    made = cast(Callable[[], Coded], resolve(f"hpc_train.logs.formats.{entry.code}"))()
    made.title, made.sample = entry.title, entry.sample
    made.literals = tuple(literal.encode() for literal in entry.literals)
    values = _file().value.formats[entry.values_of].values if entry.values_of else {}
    made.fields = _named(values or entry.values)
    return cast(LogParser, made)
