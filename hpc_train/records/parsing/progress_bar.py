"""Progress bars of tqdm and Rich -> position, other fields, and the mean time of iterations."""

from __future__ import annotations

import re
from typing import NamedTuple

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
    bars = (_bars(pattern, text) for pattern in (_TQDM, _ENDLESS, _RICH))
    found = next(filter(None, bars), [])
    return next((bar for bar in found if bar.done), found[0] if found else None)


def _bars(pattern: re.Pattern[str], text: str) -> list[Bar]:
    bars: list[Bar] = []
    for match in pattern.finditer(text):
        bars.append(_bar(match, bars[-1].end if bars else 0))
    return bars


def _bar(match: re.Match[str], free: int) -> Bar:
    elapsed = _seconds(match["elapsed"])
    return Bar(
        int(match["done"]),
        int(match["total"] or 0),
        elapsed,
        _step_time(match, elapsed),
        match["fields"] or "",
        *match.span(),
        free,
    )


def _step_time(match: re.Match[str], elapsed: int) -> float | None:
    try:
        value = float(match["rate"] or "")
    except ValueError:
        return None
    if match["unit"] == "s/it":
        return value
    done = int(match["done"])
    # 0.02it/s has only one significant digit; such bars show the mean since they began.
    mean = elapsed / done if done and elapsed else None
    return 1 / value if value >= _COARSE else mean


def _seconds(clock: str) -> int:
    parts = [int(part) for part in clock.split(":") if part]
    return sum(part * 60**place for place, part in enumerate(reversed(parts)))


class MeanInterval(NamedTuple):
    """The mean time [s] of a number of iterations."""

    step_time: float
    steps: int


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

    def interval(self, rank: int | None, loop: object, bar: Bar) -> MeanInterval | None:
        """Return the interval that ends with this state of a loop's bar, if it is long enough."""
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
            return MeanInterval(took / steps, steps)
        if start.is_whole and bar.done == bar.total and "v_num=" in bar.fields and _agrees(bar):
            # Lightning's rate of a whole epoch is its mean, with more digits than the clock.
            self._from[rank] = start._replace(done=bar.done, is_whole=False)
            return MeanInterval(bar.step_time or 0.0, steps)
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
