"""Progress bars of tqdm and Rich: those of Lightning and NeMo, and any others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from hpc_train.logs.formats.base import Coded, Hit, Unreadable
from hpc_train.logs.formats.number import number
from hpc_train.logs.line import Line

# Progress bars of tqdm and Rich -> position, other fields, and the mean time of iterations.

_TQDM = re.compile(
    r"(?:(?:\d{1,3}%)?\|[^|]{0,400}\||\d{1,3}%) *(?P<done>\d{1,12})/(?P<total>\d{1,12}) "
    r"\[(?P<elapsed>[\d:]{1,16})<[^,\]]{1,24}"
    r"(?:, +(?P<rate>[\d.]{1,16}|\?)(?P<unit>it/s|s/it))?"
    r"(?:, (?P<fields>[^\]]{0,4096}))?\]"
)
_ENDLESS = re.compile(
    r"(?<!\d)(?P<done>\d{1,12})(?P<total>)it \[(?P<elapsed>[\d:]{1,16})"
    r"(?:, +(?P<rate>[\d.]{1,16}|\?)(?P<unit>it/s|s/it))?"
    r"(?:, (?P<fields>[^\]]{0,4096}))?\]"
)
_RICH = re.compile(
    r"(?<![━╸╺─])[━╸╺─]{1,400} {0,400}(?P<done>\d{1,12})/(?:(?P<total>\d{1,12})|--) "
    r"(?P<elapsed>\d{1,4}:\d\d:\d\d) • \S{1,12} +(?P<rate>[\d.]{1,16})(?P<unit>it/s|s/it)"
    r"(?P<fields>.{0,4096})"
)

_COARSE = 0.1
_LEAST_S = 20
_RESOLUTION_S = 1
# Tolerance between a printed rate and the elapsed time, in addition to the clock's resolution.
_ROUNDING = 0.01


class Bar(NamedTuple):
    """Position of an iteration, and its time [s]; `start` is the offset where the bar begins.

    `elapsed` is the number of whole seconds since the bar began. `total` is 0 if it is unknown to
    the program. `free` is the offset where the previous bar ended.
    """

    done: int
    total: int
    elapsed: int
    step_time: float | None
    fields: str
    start: int
    end: int
    free: int


def bar_of(text: str) -> Bar | None:
    """Return the first complete bar on a line that has begun to move, else the first."""
    found: list[Bar] = []
    for pattern in (_TQDM, _ENDLESS, _RICH):
        for match in pattern.finditer(text):
            found.append(_bar(match, found[-1].end if found else 0))
        if found:
            break
    return next((bar for bar in found if bar.done), found[0] if found else None)


def _bar(match: re.Match[str], free: int) -> Bar:
    elapsed, done = 0, int(match["done"])
    for part in match["elapsed"].split(":"):
        elapsed = elapsed * 60 + int(part or 0)
    time: float | None = None
    with suppress(ValueError):
        time = float(match["rate"] or "")
        if match["unit"] != "s/it":
            # 0.02it/s has only one significant digit; such bars show the mean since they began.
            mean = elapsed / done if done and elapsed else None
            time = 1 / time if time >= _COARSE else mean
    total, fields = int(match["total"] or 0), match["fields"] or ""
    return Bar(done, total, elapsed, time, fields, *match.span(), free)


class _State(NamedTuple):
    """A state of the bar of a loop; `is_whole`: the state in which the bar began."""

    loop: object
    done: int
    elapsed: int
    is_whole: bool = False
    is_interrupted: bool = False


class BarClock:
    """Remembers, for each rank, the state from which the next interval is measured."""

    def __init__(self) -> None:
        self._from: dict[int | None, _State] = {}

    def interval(self, rank: int | None, loop: object, bar: Bar) -> tuple[float, int] | None:
        """Return the mean time [s] and the number of iterations up to this state of a loop's bar.

        None if the interval is not long enough.
        """
        start = self._from.get(rank)
        if start is None or start.loop != loop or bar.elapsed + _RESOLUTION_S < start.elapsed:
            start = self._from[rank] = _beginning(loop, bar)
        elif start.is_interrupted:
            start = self._from[rank] = _State(loop, bar.done, bar.elapsed)
        steps, took = bar.done - start.done, bar.elapsed - start.elapsed
        if steps <= 0:
            return None
        if took >= _LEAST_S:
            self._from[rank] = _State(loop, bar.done, bar.elapsed)
            return took / steps, steps
        if start.is_whole and bar.done == bar.total and "v_num=" in bar.fields and _agrees(bar):
            # Lightning's rate of a whole epoch is its mean, with more digits than the clock.
            self._from[rank] = start._replace(done=bar.done, is_whole=False)
            return bar.step_time or 0.0, steps
        return None

    def interrupt(self, rank: int | None) -> None:
        """Note that other code ran: the clock includes time outside the loop."""
        if rank in self._from:
            self._from[rank] = self._from[rank]._replace(is_interrupted=True)


def _beginning(loop: object, bar: Bar) -> _State:
    """Return the first state of a loop's bar: 0, unless it was resumed or other code ran before."""
    if not bar.done or _agrees(bar):
        return _State(loop, 0, 0, is_whole=True)
    return _State(loop, bar.done, bar.elapsed)


def _agrees(bar: Bar) -> bool:
    """Whether the printed rate is that of all iterations since 0."""
    if bar.step_time is None:
        return False
    mean = bar.elapsed / bar.done
    return abs(bar.step_time - mean) <= _RESOLUTION_S / bar.done + _ROUNDING * bar.step_time


# Lightning's progress bars, of tqdm and of Rich: `Epoch 0:  23%|..| 23/100 [.., 2.16it/s, ..]`.

_EPOCH = re.compile(r"[Ee]poch:? ?(\d{1,9})(?:/(-?\d{1,9}))?(:)?[: ]*$")
_METRICS = {
    "loss": re.compile(
        r"(?:^|[ ,])(?:train(?:ing)?[_/])?(?:step_)?loss(?:_step)?(?:=|: )([-+.\w]{1,32})"
    ),
    "grad_norm": re.compile(r"(?:^|[ ,])grad_norm(?:=|: )([-+.\w]{1,32})"),
    "learning_rate": re.compile(r"(?:^|[ ,])(?:lr|learning_rate)(?:=|: )([-+.\w]{1,32})"),
}


class LightningBar(Coded):
    """Parser of the bars; remembers the state of the last bar."""

    def __init__(self) -> None:
        self._clock = BarClock()
        self._seen: dict[str, str] = {}

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the times of iterations, and each value where it changes.

        A bar is drawn again after its values were set: the first drawing shows the previous values.
        """
        text = line.text
        bar = bar_of(text)
        epoch = None if bar is None else _EPOCH.search(text, max(0, bar.start - 40), bar.start)
        if bar is None or epoch is None:
            if bar is not None:
                self._clock.interrupt(line.rank)
            return
        # The completed epochs: Rich's `Epoch 0/9` has no colon and counts from 0.
        over = max(0, int(epoch[1]) - (epoch[2] is not None and epoch[3] is not None))
        step = over * bar.total + bar.done if bar.total or not over else None
        found = self._clock.interval(line.rank, over, bar)
        if found is not None:
            yield Hit("step_time", found[0], "per_rank", step, steps=found[1])
        for metric, pattern in _METRICS.items() if bar.done else ():
            shown = pattern.search(bar.fields)
            if shown is None or self._seen.get(metric) == shown[1]:
                continue
            self._seen[metric] = shown[1]
            value = number(shown[1])
            if value is not None:
                yield Hit(metric, value, "per_rank", step)


# Progress bars of tqdm of an unknown loop: `Map:  50%|#####| 5/10 [00:02<00:02, 2.00it/s]`.

_LONGEST = 40


class TqdmBar(Coded):
    """Parser of the bars that no other parser takes; remembers the last one."""

    def __init__(self) -> None:
        self._last: tuple[int | None, str, int] | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the time of an iteration if the bar has advanced."""
        text = line.text
        bar = bar_of(text)
        if bar is None or not bar.done or bar.step_time is None:
            return
        name = " ".join(text[bar.free : bar.start].split()).rstrip(" :-")[-_LONGEST:]
        state = (line.rank, name, bar.done)
        if state != self._last:
            yield Hit("iteration_time", bar.step_time, "unknown", bar.done, variant=name)
        self._last = state


# NeMo: the bar of 1.x (`.., train_step_timing in s=3.13]`), the lines of 2.x (`.. in s: 3.13 |`).

_LINE = re.compile(
    r"Training epoch (?P<epoch>\d{1,9}), iteration (?P<done>\d{1,12})/(?P<total>\d{1,12}) \| "
)
_FIELD = re.compile(r"([A-Za-z_][\w ]{1,40}?)(?:=|: )([-+.\w]{1,32})")
_NEMO_EPOCH = re.compile(r"Epoch (\d{1,9}):")
_TIMINGS = frozenset({"train_step_timing in s", "train_step_timing"})


class Nemo(Coded):
    """Parser of both forms; remembers the last bar, which is drawn more than once."""

    def __init__(self) -> None:
        self._last: tuple[int | None, str] | None = None
        self._clock = BarClock()

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a line, or of a bar with new values."""
        text = line.text
        started = _LINE.search(text)
        if started is not None:
            fields = _fields(text[started.end() :])
            place = int(started["epoch"]) * (int(started["total"]) + 1) + int(started["done"])
            yield from self.stated(fields, _step(fields, place))
            return
        if "reduced_train_loss=" not in text:
            # The search for a bar takes ten times as long.
            return
        bar = bar_of(text)
        if bar is None or "reduced_train_loss=" not in bar.fields:
            if text.startswith("Epoch "):
                yield Unreadable()
            return
        fields = _fields(bar.fields)
        shown = fields.get("global_step", "")
        # tqdm rounds 123456 to 1.23e+5, which is the same for many steps.
        last = (line.rank, f"{bar.done}" if "e" in shown else shown or f"{bar.done}")
        if last != self._last:
            match = _NEMO_EPOCH.search(text)
            epoch = int(match[1]) if match else 0
            # Without a total, the bar of a later epoch lacks the run's step; `global_step` has it.
            step = _step(fields, epoch * bar.total + bar.done)
            took = self._clock.interval(line.rank, epoch, bar)
            if took is not None and not _TIMINGS & fields.keys():
                yield Hit("step_time", took[0], "global", step, steps=took[1])
            yield from self.stated(fields, step)
        self._last = last


def _fields(text: str) -> dict[str, str]:
    return {name.strip(): value for name, value in _FIELD.findall(text)}


def _step(fields: dict[str, str], place: int) -> int:
    shown = fields.get("global_step", "")
    value = None if "e" in shown else number(shown)
    return place if value is None or not 0 <= value < 1e15 else int(value)
