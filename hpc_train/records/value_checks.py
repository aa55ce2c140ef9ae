"""Records -> those whose value is possible; the others are refused and counted.

Of every parser, a user's patterns and plug-ins among them:

- a fraction (`accuracy`, `mfu`) is from 0 to 1;
- a time of a step, an epoch or a training is above 0, and so is a rate of samples or tokens; any
  other time (s, us) or rate (.../s) is not negative; all of them are finite;
- a rate is at most 1,000 times the median of its neighbours: up to five values before it and five
  after it in the same file, of the same parser, metric, variant, unit, scope, rank and message
  size, at least three of which are above 0. A step time counts as a rate of steps. Of a live pipe,
  the values after it are those that came at once.

Only rates that are too high are compared: a first step or a stall may well take 1,000 times as long
as the others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from hpc_train.model.record import Record
from hpc_train.records.census import Census, Seen
from hpc_train.records.live import lots

FRACTIONS = frozenset({"accuracy", "mfu"})
_POSITIVE = frozenset(
    {
        *("step_time", "epoch_time", "time_to_train", "first_step_time", "iteration_time"),
        *("samples_per_second", "tokens_per_second", "latency"),
    }
)
_TIMES = frozenset({"s", "us"})
_LEAST, _MOST = 5e-324, sys.float_info.max
_FACTOR = 1000.0
_ASIDE = 5
_LEAST_NEIGHBOURS = 3
# Enough that neighbours are at hand, and few enough that records come while a log is read.
_LOT = 1024
_FILE = attrgetter("run", "source")
_SERIES = attrgetter(
    "metric", "parser", "variant", "unit", "scope", "rank", "message_size"
)  # fmt: skip


class _Check(NamedTuple):
    """From where to where a value is possible, what is wrong with others; whether it is a rate."""

    low: float
    high: float
    wrong: str
    is_rate: bool


def possible(records: Iterator[Record], census: Census, *, live: bool = False) -> Iterator[Record]:
    """Yield the records whose value is possible, in their order; `census` counts the others.

    Where a log is `live`, records are not kept until there are many.
    """
    for _, of_file in groupby(records, _FILE):
        before: dict[object, list[float]] = {}
        for lot in lots(of_file, _LOT) if live else _lots(of_file):
            yield from _possible(lot, before, census)


def _lots(records: Iterator[Record]) -> Iterator[list[Record]]:
    while lot := list(islice(records, _LOT)):
        yield lot


def _possible(
    lot: Sequence[Record], before: dict[object, list[float]], census: Census
) -> Iterator[Record]:
    """Yield what is possible of some records of a file; `before` holds the last rates of each."""
    wrong: dict[int, str] = {}
    rates: dict[object, list[int]] = {}
    for place, record in enumerate(lot):
        check = _check(record.metric, record.unit)
        if check is None:
            continue
        if not check.low <= record.value <= check.high:
            wrong[place] = check.wrong
        elif check.is_rate:
            rates.setdefault(_SERIES(record), []).append(place)
    for series, places in rates.items():
        last = before.get(series, [])
        values = [*last, *(_rate(lot[place]) for place in places)]
        if max(values) > _FACTOR * min(values):
            high = _too_high(values, len(last))
            wrong |= {places[at - len(last)]: "is 1,000 times its neighbours" for at in high}
            values = [value for at, value in enumerate(values) if at not in high]
        before[series] = values[-_ASIDE:]
    for place, record in enumerate(lot):
        if place in wrong:
            _refuse(record, wrong[place], census)
        else:
            yield record


@lru_cache(maxsize=1024)
def _check(metric: str, unit: str) -> _Check | None:
    """Return what a value must be; None where every value is possible."""
    is_rate = unit.endswith("/s") or metric == "step_time"
    if metric in FRACTIONS:
        return _Check(0.0, 1.0, "is not from 0 to 1", False)
    if metric in _POSITIVE:
        return _Check(_LEAST, _MOST, "is not above 0 and finite", is_rate)
    if unit in _TIMES or is_rate:
        return _Check(0.0, _MOST, "is negative or not finite", is_rate)
    return None


def _rate(record: Record) -> float:
    return 1 / max(record.value, 1 / _MOST) if record.metric == "step_time" else record.value


def _too_high(values: Sequence[float], first: int) -> set[int]:
    """Return the places, from `first` on, of values far above their neighbours."""
    found = set()
    for at in range(first, len(values)):
        beside = (*values[max(0, at - _ASIDE) : at], *values[at + 1 : at + 1 + _ASIDE])
        beside = tuple(value for value in beside if value > 0)
        if len(beside) >= _LEAST_NEIGHBOURS and values[at] > _FACTOR * median(beside):
            found.add(at)
    return found


def _refuse(record: Record, wrong: str, census: Census) -> None:
    name = f"{record.run}: {record.metric} {wrong}"
    seen = census.refused.get(name)
    if seen is None:
        census.refused[name] = Seen(record.source, record.line, f"{record.value:g}")
    else:
        seen.lines += 1
