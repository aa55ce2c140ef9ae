"""Quantities of a hand-written line -> times of steps and epochs, and rates, where certain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpc_train.model.record import Scope
from hpc_train.records.parsing.printed_numbers import COUNTABLE, scaled
from hpc_train.records.parsing.printed_quantities import Quantity, plain_unit

MEAN = r"(?:(?:avg|average|mean|train|training|the) ){0,4}"
_STEP = r"(?:step|iter|iteration|batch|minibatch)"
_INDEX = re.compile(rf"(?:.{{0,60}} )?({_STEP}|epoch)(?: (?:no|idx|number))?")
LOSS = re.compile(rf"{MEAN}(?:lm )?loss")
_STEP_TIME = re.compile(
    rf"{MEAN}(?:{_STEP} (?:time|took|duration|latency)|steptime|dt"
    rf"|time (?:per|a|for|of|for each) {_STEP})"
)
_EPOCH_TIME = re.compile(
    rf"{MEAN}(?:epoch (?:time|took|duration)|epochtime|time (?:per|for|of) epoch)"
)
_TIME = re.compile(rf"{MEAN}time")
_DURATION = re.compile(
    rf"took|takes|finished in|completed in|done in|time taken|duration|{MEAN}time"
)
_RATE = re.compile(
    rf"{MEAN}(?:(?:total|global|overall) )?(?:throughput|speed|rate|performance|perf"
    r"|training speed|samples|tokens|images)?"
)
_TOTAL = re.compile(r"\b(?:total|global|overall|aggregate)\b")
_KEY_UNIT = re.compile(
    r"\A(.{0,40}?) ?\b(samples?|images?|imgs?|examples?|tokens?|toks?|tok|seqs?|sequences?|its?"
    r"|iters?|iterations?|steps?|ms|msec|s|sec|seconds|min|minutes)(?: (?:per )?(s|sec|second))?"
)
SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
RATES = {"sample/s": "samples_per_second", "token/s": "tokens_per_second"}


class Found(NamedTuple):
    """A metric that a quantity states."""

    metric: str
    value: float
    scope: Scope = "per_rank"


def place_of(found: list[Quantity]) -> dict[str, int]:
    """Return the number of the epoch and of the step that a line names."""
    place: dict[str, int] = {}
    for item in found:
        match = None if item.unit else _INDEX.fullmatch(item.words)
        if match and 0 <= item.value < COUNTABLE and item.value.is_integer():
            place.setdefault("epoch" if match[1] == "epoch" else "step", int(item.value))
    return place


def with_unit_of_key(item: Quantity) -> Quantity:
    """Return a quantity whose key names the unit (`time_ms`, `tok/sec`) with that unit."""
    match = None if item.unit else _KEY_UNIT.fullmatch(item.words)
    if match is None:
        return item
    key, unit, per = match.groups()
    if per:
        return item._replace(words=key or "rate", unit=plain_unit(f"{unit}/{per}"))
    # A time needs a key: `10 s`, but not `steps: 10`.
    unit = plain_unit(unit)
    return item._replace(words=key, unit=unit) if key and unit in SECONDS else item


def time_metric(item: Quantity, place: dict[str, int], line: list[Quantity]) -> str:
    """Return the metric of a time with a unit; empty if it is not certain."""
    key = item.words
    # `1 min 30 s`, `3 s ± 1 s`
    if any(one.unit in SECONDS and not one.words for one in line):
        return ""
    if _STEP_TIME.fullmatch(key):
        return "step_time"
    if _EPOCH_TIME.fullmatch(key):
        return "epoch_time"
    return _named_before(item, place, line) if _DURATION.fullmatch(key) else ""


def _named_before(item: Quantity, place: dict[str, int], line: list[Quantity]) -> str:
    """Return the metric of a time whose key does not say what it is the time of."""
    if place.keys() == {"epoch"}:
        return "epoch_time"
    # `Step 100 took 3 s` may be the time since the line of step 0, `time 12 s` that of the job.
    if item.unit != "ms":
        return ""
    if _TIME.fullmatch(item.words):
        return "step_time" if place.keys() == {"step"} else ""
    before = line[: _position(item, line)]
    return "step_time" if before and "step" in place_of(before[-1:]) else ""


def _position(item: Quantity, line: list[Quantity]) -> int:
    return next((n for n, one in enumerate(line) if one[1:3] == item[1:3]), 0)


def rate(item: Quantity, place: dict[str, int], line: list[Quantity]) -> Iterator[Found]:
    """Yield the metric of a rate; its scope is unknown, unless the line names it."""
    scope: Scope = "unknown"
    is_known = place or any(LOSS.fullmatch(one.words) for one in line)
    if item.value <= 0 or not _RATE.fullmatch(item.words) or not (item.words or is_known):
        return
    if item.each in ("gpu", "device"):
        scope = "per_gpu"
    elif item.each:
        scope = "per_rank"
    elif _TOTAL.search(item.words):
        scope = "global"
    if item.unit in RATES:
        yield Found(RATES[item.unit], item.value, scope)
    elif item.unit in ("step/s", "ms/step", "s/step"):
        yield Found("step_time", _time(item))
    elif item.unit in ("it/s", "ms/it", "s/it"):
        # The loop that prints a loss is that of the training.
        trains = any(LOSS.fullmatch(one.words) for one in line)
        metric, scope = ("step_time", "per_rank") if trains else ("iteration_time", "unknown")
        yield Found(metric, _time(item), scope)


def _time(item: Quantity) -> float:
    """Return the time [s] of a step that a rate states."""
    over = item.unit.partition("/")[0]
    return scaled(item.value, SECONDS[over]) if over in SECONDS else 1 / item.value
