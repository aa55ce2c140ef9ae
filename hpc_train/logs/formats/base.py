"""Interface of a log parser, the types that it yields, and the numbers in a text."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, Protocol

import msgspec

from hpc_train.base.values import Value
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

_SUFFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
NUMBER = r"[-+]?(?:\d[\d,]{0,39}(?:\.\d{0,39})?|\.\d{1,39})(?:[eE][-+]?\d{1,9})?(?!\d)"
"""Pattern of a finite number, with thousands separated or not; bounded, so that no line is slow."""
VALUE = rf"({NUMBER}|-?nan|-?inf)"
"""Group of what stands where a number should: also one that is not finite."""
COUNTABLE = 10**15
"""Beyond this a step or rank is no number of anything, and tables hold 64 bits."""
CLOCK = r"(?:\d{1,6} days?, )?\d{1,7}:\d\d:\d\d(?:\.\d{1,9})?"
"""Pattern of days, hours, minutes and seconds."""
_CLOCK = re.compile(r"(?:(\d{1,6}) days?, )?(?:(\d{1,7}):)?(\d{1,3}):(\d\d(?:\.\d{1,9})?)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
scan = json.JSONDecoder().raw_decode


def number(text: str) -> float | None:
    """Return the number that a text states; None if there is none, or it is not finite."""
    try:
        value = float(text)
    except ValueError:
        value = _decorated(text)
    # Neither NaN nor infinite.
    return value if -math.inf < value < math.inf else None


def scaled(value: float, factor: float) -> float:
    """Return a printed number in another unit, without what binary fractions add: 51 ms, 0.051 s.

    Printed numbers have fewer digits than are kept.
    """
    return value if factor == 1.0 else float(f"{value * factor:.15g}")


def quotient(over: float, under: float) -> float | None:
    """Return a ratio of two printed numbers; None where it is none, or beyond all numbers."""
    value = over / under if under else math.inf
    return value if math.isfinite(value) else None


def countable(value: float | None) -> int | None:
    """Return a step, a rank or a size as a whole number; None where it cannot be one."""
    return None if value is None or not abs(value) < COUNTABLE else round(value)


def _decorated(text: str) -> float:
    scale = _SUFFIXES.get(text[-1:], 1.0)
    plain = text[:-1] if scale != 1.0 else text
    if "," in plain:
        # `0,532` and `12,5` have a decimal comma: no group of three digits begins with 0.
        plain = plain.replace(",", "" if _GROUPED.match(plain) else ".")
    try:
        return float(plain) * scale
    except ValueError:
        return math.nan


def seconds(text: str) -> float | None:
    """Return the duration [s] that a text states, as a clock or as a number of seconds."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return number(text)
    days, hours, minutes, rest = match.groups(default="0")
    return int(days) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(rest)


def finite(raw: object) -> float | None:
    """Return a JSON number as float; None if it is not a number, too large or not finite."""
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    try:
        return float(raw)
    except OverflowError:
        return None


def whole(raw: object) -> int | None:
    """Return a JSON number as a count; None if it is not a whole number from 0."""
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < COUNTABLE:
        return raw
    return None


def scan_object(text: str, start: int) -> tuple[dict[str, object], int] | None:
    """Return the object that starts at `start` and where it ends, whatever follows it."""
    try:
        found, end = scan(text, start)
    except (ValueError, RecursionError):
        return None
    return (found, end) if isinstance(found, dict) else None


# The rank in the prefix of the line or in the file name.
OF_LINE = -1
_PATIENCE = 50


class Hit(msgspec.Struct, frozen=True, gc=False):
    """One measurement in a line.

    `unit` may be empty for the metrics of `model.record.UNITS`. `rank` is only needed if the text
    itself contains a rank. `steps` is the number of steps that the value is the mean of. `variant`
    distinguishes two values of one metric (`in_place`, `max`). Hits with the same parser, metric
    and `once` are one measurement that several ranks print: the first one is used. `node` is only
    needed if the text itself names one.
    """

    metric: str
    value: float
    scope: Scope
    step: int | None = None
    rank: int | None = OF_LINE
    unit: str = ""
    steps: int = 1
    message_size: int | None = None
    variant: str = ""
    once: str = ""
    node: str = ""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A line with damaged measurements: truncated, or mixed with another line."""


class LogParser(Protocol):
    """Reads one kind of log; an object reads one log, line by line, and may have state.

    A class or function that returns a new parser is registered. `literals`: every line that the
    parser searches for contains at least one of them, and only those lines are passed to `read`. A
    literal contains no line end; rare literals are faster. `wants_next` requests the next line
    as well, whatever it contains: a parser sets it at the header of a table and clears it at the
    end.

    `title` and `sample` are the documentation: the programs that print such logs, and a few lines.
    """

    @property
    def title(self) -> str: ...
    @property
    def literals(self) -> tuple[bytes, ...]: ...
    @property
    def sample(self) -> str: ...
    @property
    def wants_next(self) -> bool: ...

    def read(self, line: Line) -> Iterable[Hit | Unreadable]:
        """Return the measurements in `line.text`; none if the line has another format."""
        ...


class Measure(Value, frozen=True, kw_only=True):
    """What a group or key states; `metric` is its own name unless given.

    `scale`: factor to the unit of the metric; a new metric needs a `unit`. `at`: its step is that
    of the line, the number of the last epoch, or it is of the run. `mean`: over the steps since the
    last line, or since the start. `nonzero`: 0 is no measurement. `beside`, `unless`: another key
    that the line has to hold, or must not hold. `over`: the group of the number of which it is a
    part.
    """

    scope: Scope
    metric: str = ""
    unit: str = ""
    scale: float = 1.0
    variant: str = ""
    at: Literal["step", "epoch", "run"] = "step"
    mean: Literal["", "since_last", "since_start"] = ""
    once: str = ""
    nonzero: bool = False
    beside: str = ""
    unless: str = ""
    over: str = ""

    def hit(
        self, value: float, step: int | None, steps: int = 1, rank: int | None = OF_LINE
    ) -> Hit:
        """Return a printed value in the unit of the metric, `steps` after the line before."""
        steps, value = steps if self.mean else 1, scaled(value, self.scale)
        place = (step, rank, self.unit, steps, None)
        return Hit(self.metric, value, self.scope, *place, self.variant, self.once)


class Coded:
    """A parser of the package that is code; the rest is in the file of formats.

    `formats.maker` gives each object its title, literals, sample and fields.
    """

    title = sample = ""
    literals: tuple[bytes, ...] = ()
    fields: Mapping[str, Measure] = MappingProxyType({})
    wants_next = False

    def stated(
        self, found: Mapping[str, object], step: int | None, steps: int = 1
    ) -> Iterator[Hit]:
        """Yield the fields among the keys of a line, in the order of the file."""
        for key, field in self.fields.items():
            if key in found:
                shown = found[key]
                value = number(shown) if isinstance(shown, str) else finite(shown)
                if value is not None:
                    yield field.hit(value, step, steps)


class TableParser(Coded):
    """Requests each line from the header of a table to its end.

    A table also ends if too many lines follow that do not belong to it.
    """

    _others = 0

    def begin(self) -> None:
        """Note the head of a table, or one of its rows."""
        self.wants_next, self._others = True, 0

    def end(self) -> None:
        """Note the end of the table."""
        self.wants_next = False

    def other(self) -> None:
        """Note a line that does not belong to the table."""
        self._others += 1
        if self._others > _PATIENCE:
            self.wants_next = False


# Step numbers: within the run for programs that count per epoch, and steps between log lines.


class RunningStep:
    """Continues the count over epochs; unlogged steps at the end of an epoch are not counted."""

    def __init__(self) -> None:
        self._epoch: object = None
        self._last = 0
        self._since = 1
        self._before = 0

    def at(self, epoch: object, step: int) -> tuple[int, int]:
        """Return the number within the run of a step of an epoch, and the steps since the last."""
        if epoch != self._epoch or step < self._last:
            self._before += self._last
            self._epoch, self._last = epoch, 0
        if step != self._last:
            self._since, self._last = max(1, step - self._last), step
        return self._before + step, self._since


class Intervals:
    """Remembers the last step that each rank logged."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[int, int]] = {}

    def since(self, line: Line, step: int, first: int = 1) -> int:
        """Return the steps since the previous line; `first` if none, or if the step decreases."""
        # A prefix of torchrun states the local rank only.
        who = (line.prefix.rank, line.prefix.local, line.prefix.task)
        last, before = self._last.get(who, (step, first))
        steps = before if step == last else step - last if step > last else first
        self._last[who] = (step, steps)
        return steps


# `key: value | key: value |`: the fields of a line by their names, in any order.

_FIELD = re.compile(r"^\s{0,40}([^:=]{1,80})[:=]\s{0,40}(\S.{0,80})")
# The first Megatron had no colons: `lm loss 9.2E+00`.
_BARE = re.compile(rf"\s{{0,40}}([A-Za-z][A-Za-z _-]{{0,60}}) ({NUMBER})\s{{0,40}}")
_NO_WORD = re.compile(r"[^a-z0-9]+")


def fields(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return key and value of each field that ends with `|`, and the key of an incomplete last one.

    Keys are in lower case, with single spaces between words. A number that was truncated looks
    like a complete one, so a field without `|` after it is ignored.
    """
    *whole, rest = text.split("|")
    found = [pair for part in whole if (pair := _pair(part))]
    last = _pair(rest)
    return found, last[0] if last else ""


def _pair(part: str) -> tuple[str, str] | None:
    match = _FIELD.fullmatch(part) or _BARE.fullmatch(part)
    return match and (_words(match[1]), match[2].rstrip())


@lru_cache(1024)
def _words(key: str) -> str:
    return _NO_WORD.sub(" ", key.lower()).strip()
