"""Records -> those with possible values; the others are refused and counted.

The rules for every parser, including user patterns and plug-ins:

- a fraction (`accuracy`, `mfu`) is from 0 to 1;
- a time of a step, an epoch or a training is above 0, and so is a rate of samples or tokens; any
  other time (s, us) or rate (.../s) is not negative; all of them are finite;
- memory, power and energy are from 0 to 1e100;
- a rate is at most 1,000 times the median of its neighbours: up to five values before it and five
  after it in the same file, of the same parser, metric, variant, unit, scope, rank and message
  size, at least three of which are above 0. A step time counts as a rate of steps. In a live pipe,
  only values that arrived in the same batch come after it.

Only rates that are too high are compared: a first step or a stall may take 1,000 times as long as
the others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from hpc_train.model.record import Pack
from hpc_train.records.parse_stats import LineSample, ParseStats

FRACTIONS = frozenset({"accuracy", "mfu"})
_POSITIVE = frozenset(
    {
        *("step_time", "epoch_time", "time_to_train", "first_step_time", "iteration_time"),
        *("samples_per_second", "tokens_per_second", "latency"),
    }
)
_TIMES = frozenset({"s", "us"})
_AMOUNTS = frozenset({"memory", "power", "energy"})
_LEAST, _MOST = 5e-324, sys.float_info.max
_FACTOR = 1000.0
_ASIDE = 5
_LEAST_NEIGHBOURS = 3
_series = attrgetter("metric", "parser", "variant", "unit", "scope", "message_size")
_Key = tuple[Any, int | None]
"""Key of a series of neighbouring values: the fields of `_series`, and the rank."""


class _Check(NamedTuple):
    """The range of possible values, the error for others, and whether the metric is a rate.

    Most metrics have no limits.
    """

    low: float
    high: float
    wrong: str
    is_rate: bool


_ANY = _Check(-math.inf, math.inf, "", False)


def possible(packs: Iterable[Pack], census: ParseStats) -> Iterator[Pack]:
    """Yield the records whose value is possible, in their order; `census` counts the others."""
    for _, of_file in groupby(packs, _file):
        before: dict[_Key, list[float]] = {}
        for pack in of_file:
            wrong = _out_of_range(pack)
            wrong |= dict.fromkeys(_far_above(pack, wrong, before), "is 1,000 times its neighbours")
            for place in sorted(wrong):
                _refuse(pack, place, wrong[place], census)
            sound = pack.without(wrong) if wrong else pack
            if len(sound):
                yield sound


def _file(pack: Pack) -> tuple[str, str]:
    return pack.kinds[0].run, pack.kinds[0].source


def _out_of_range(pack: Pack) -> dict[int, str]:
    """Return the positions of impossible values, each with the error."""
    checks = [_check(kind.metric, kind.unit) for kind in pack.kinds]
    bounds = [(check.low, check.high) for check in checks]
    cells = enumerate(zip(pack.kind, pack.value, strict=True))
    outside = [
        (place, checks[kind].wrong)
        for place, (kind, value) in cells
        if not bounds[kind][0] <= value <= bounds[kind][1]
    ]
    return {place: wrong for place, wrong in outside if wrong}


def _far_above(pack: Pack, wrong: Container[int], before: dict[_Key, list[float]]) -> Iterator[int]:
    """Yield the positions of rates far above their neighbours; `before` has the last of each."""
    for key, places in _rates(pack, wrong).items():
        last = before.get(key, [])
        values = [*last, *[pack.value[place] for place in places]]
        rate = _steps_per_second if key[0][0] == "step_time" else float
        ends = [rate(min(values)), rate(max(values))]
        if max(ends) > _FACTOR * min(ends):
            high = _too_high([rate(value) for value in values], len(last))
            yield from (places[at - len(last)] for at in high)
            values = [value for at, value in enumerate(values) if at not in high]
        before[key] = values[-_ASIDE:]


def _rates(pack: Pack, wrong: Container[int]) -> dict[_Key, list[int]]:
    """Return the positions of the rates of each series."""
    is_rate = [_check(kind.metric, kind.unit).is_rate for kind in pack.kinds]
    # Several kinds may form one series, and numbers are compared faster than tuples.
    numbers: dict[Any, int] = {}
    series = [numbers.setdefault(_series(kind), len(numbers)) for kind in pack.kinds]
    found: dict[tuple[int, int | None], list[int]] = {}
    for place, (kind, rank) in enumerate(zip(pack.kind, pack.rank, strict=True)):
        if is_rate[kind] and place not in wrong:
            found.setdefault((series[kind], rank), []).append(place)
    names = tuple(numbers)
    return {(names[number], rank): places for (number, rank), places in found.items()}


@lru_cache(maxsize=1024)
def _check(metric: str, unit: str) -> _Check:
    """Return the check of a metric."""
    is_rate = unit.endswith("/s") or metric == "step_time"
    if metric in FRACTIONS:
        return _Check(0.0, 1.0, "is not from 0 to 1", False)
    if metric in _AMOUNTS:
        return _Check(0.0, 1e100, "is not from 0 to 1e100", False)
    if metric in _POSITIVE:
        return _Check(_LEAST, _MOST, "is not above 0 and finite", is_rate)
    if unit in _TIMES or is_rate:
        return _Check(0.0, _MOST, "is negative or not finite", is_rate)
    return _ANY


def _steps_per_second(step_time: float) -> float:
    return 1 / max(step_time, 1 / _MOST)


def _too_high(values: Sequence[float], first: int) -> set[int]:
    """Return the positions, from `first` on, of values far above their neighbours."""
    found = set()
    for at in range(first, len(values)):
        beside = (*values[max(0, at - _ASIDE) : at], *values[at + 1 : at + 1 + _ASIDE])
        beside = tuple(value for value in beside if value > 0)
        if len(beside) >= _LEAST_NEIGHBOURS and values[at] > _FACTOR * median(beside):
            found.add(at)
    return found


def _refuse(pack: Pack, place: int, wrong: str, census: ParseStats) -> None:
    kind, value = pack.kinds[pack.kind[place]], pack.value[place]
    name = f"{kind.run}: {kind.metric} {wrong}"
    seen = census.refused.get(name)
    if seen is None:
        census.refused[name] = LineSample(kind.source, pack.line[place], f"{value:g}")
    else:
        seen.lines += 1
