"""Hand-written lines of training loops: `key: value`, `key=value`, JSON, and times with a unit.

The last parser: it reads only logs in which no other parser found a measurement, and a report says
so. A value is read only if its words and its unit leave no doubt:

- `step_time` and `epoch_time`, per rank: a time with a unit, of a named step or epoch
  (`step time: 51 ms`, `Epoch 0 took 0.5s`); the key may have the unit (`step_time_ms`).
- `samples_per_second` and `tokens_per_second`: a rate of images, samples or sequences, or of
  tokens. The scope is unknown, unless the line says `total` or `per GPU`.
- `iteration_time`, scope unknown: `it/s` and `s/it` of an unknown loop.
- `loss`, per rank: that of the training.
- `accuracy`, per rank: with `%` or the word percent, otherwise at most 1. Beside a loss, an
  accuracy without `val` or `test` is that of the training and is ignored.
- `learning_rate`, `grad_norm` and `memory` (GiB, MiB), in a line with one of the above.

Times and rates of a validation, of a part of a step and of the whole job are ignored, and so are
two values of one metric on a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import OF_LINE, Hit
from hpc_train.records.parsing.printed_numbers import COUNTABLE, finite, scaled
from hpc_train.records.parsing.printed_quantities import Quantity, plain_unit, quantities, words

_VALID = r"(?:val|valid|validation|eval|evaluation|test|testing|dev)"
_VALIDATION = re.compile(rf"\b{_VALID}\b")
# Lines of other work, of plans, and of sums over a whole job.
_OTHER = re.compile(
    r"\b(?:download|upload|sav(?:e|ed|ing)|load(?:ed|ing)|compil|checkpoint|expected|target|estimat"
    r"|limit|timeout|best|warm-?up|infer|generat|tokeniz|preprocess|previous|baseline|https?:"
    r"|namespace\(|error|exception|file \"|peak|theoretical|prefetch)"
    r"|%\|",
    re.IGNORECASE,
)
_MEAN = r"(?:(?:avg|average|mean|train|training|the) ){0,4}"
_STEP = r"(?:step|iter|iteration|batch|minibatch)"
_INDEX = re.compile(rf"(?:.{{0,60}} )?({_STEP}|epoch)(?: (?:no|idx|number))?")
_RANK = re.compile(r"\W{0,3}(?:rank|worker|gpu)[ :#=]{0,2}(\d{1,6})\b", re.IGNORECASE)
_LOSS = re.compile(rf"{_MEAN}(?:lm )?loss")
# An accuracy beside a loss is that of the training, unless its key says otherwise.
_TRAINING = re.compile(rf"\b(?:train|training|loss|{_VALID} acc|{_VALID} accuracy)\b")
_ACCURACY = re.compile(
    rf"(?:(?:avg|average|mean|{_VALID}) ){{0,4}}(?:top ?1 )?(?:acc|accuracy)( percent)?"
)
_STEP_TIME = re.compile(
    rf"{_MEAN}(?:{_STEP} (?:time|took|duration|latency)|steptime|dt"
    rf"|time (?:per|a|for|of|for each) {_STEP})"
)
_EPOCH_TIME = re.compile(
    rf"{_MEAN}(?:epoch (?:time|took|duration)|epochtime|time (?:per|for|of) epoch)"
)
_TIME = re.compile(rf"{_MEAN}time")
_DURATION = re.compile(
    rf"took|takes|finished in|completed in|done in|time taken|duration|{_MEAN}time"
)
_RATE = re.compile(
    rf"{_MEAN}(?:(?:total|global|overall) )?(?:throughput|speed|rate|performance|perf"
    r"|training speed|samples|tokens|images)?"
)
_TOTAL = re.compile(r"\b(?:total|global|overall|aggregate)\b")
_KEY_UNIT = re.compile(
    r"(.{0,40}?) ?\b(samples?|images?|imgs?|examples?|tokens?|toks?|tok|seqs?|sequences?|its?"
    r"|iters?|iterations?|steps?|ms|msec|s|sec|seconds|min|minutes)(?: (?:per )?(s|sec|second))?"
)
_LR, _NORM = re.compile(r"lr|learning rate"), re.compile(r"(?:grad|gradient) norm|gnorm")
_MEMORY = re.compile(
    r"(?:max |gpu |cuda |used |allocated ){0,4}(?:mem|memory)(?: (?:used|allocated))?"
)
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
_RATES = {"sample/s": "samples_per_second", "token/s": "tokens_per_second"}
_COMPANIONS = frozenset({"learning_rate", "grad_norm", "memory"})
_LONGEST = 4096


class _Found(NamedTuple):
    metric: str
    value: float
    scope: Scope = "per_rank"


class Generic:
    """Parser of the lines above, without state."""

    title = "Hand-written lines; used if no other format is found, and a report says so"
    literals = (
        *(b"loss", b"Loss", b"LOSS", b"took", b"time", b"Time", b"duration", b"dt", b"acc", b"Acc"),
        *(b"/s", b" per s", b"per_s", b"s/", b"finished in", b"completed in", b"done in"),
    )
    sample = (
        "Epoch 0 took 0.54s, 3823.1 images/sec\niter 10, loss=2.31, dt=51.2ms, tok/sec=80,124"
        "\nTest accuracy: 91.5%"
    )
    states: Mapping[str, Scope] = {
        "epoch_time": "per_rank",
        "samples_per_second": "unknown",
        "loss": "per_rank",
        "step_time": "per_rank",
        "tokens_per_second": "unknown",
        "accuracy": "per_rank",
    }
    wants_next = False

    def read(self, line: Line) -> list[Hit]:
        """Return the values of a line that are certain."""
        text = line.text
        if _OTHER.search(text):
            return []
        found = list(_json(text)) if text.startswith("{") else list(quantities(text))
        place, rank = _place(found), _rank(line)
        if not text.startswith("{") and _names_validation(text, found):
            found = [item for item in found if _ACCURACY.fullmatch(item.words)]
        training = _TRAINING.search(words(text[:_LONGEST])) is not None
        values = [one for item in found for one in _values(item, place, found, training)]
        kinds = Counter(one.metric for one in values)
        if not kinds.keys() - _COMPANIONS:
            return []
        return [
            Hit(one.metric, one.value, one.scope, _step(one.metric, place), rank)
            for one in values
            if kinds[one.metric] == 1
        ]


def _json(text: str) -> Iterator[Quantity]:
    """Yield the numbers of an object on one line by their keys; nested objects are ignored."""
    if len(text) > _LONGEST:
        return
    try:
        found = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return
    for key, raw in found.items():
        value = finite(raw)
        if value is not None:
            yield Quantity(words(key), str(raw), value)


def _place(found: list[Quantity]) -> dict[str, int]:
    """Return the number of the epoch and of the step that a line names."""
    place: dict[str, int] = {}
    for item in found:
        match = None if item.unit else _INDEX.fullmatch(item.words)
        if match and 0 <= item.value < COUNTABLE and item.value.is_integer():
            place.setdefault("epoch" if match[1] == "epoch" else "step", int(item.value))
    return place


def _rank(line: Line) -> int:
    """Return the rank that the text begins with, if no prefix states one."""
    match = _RANK.match(line.text) if line.rank is None else None
    return OF_LINE if match is None else int(match[1])


def _names_validation(text: str, found: list[Quantity]) -> bool:
    """Whether a line is that of a validation: the word is not only in the keys of some values."""
    in_keys = sum(len(_VALIDATION.findall(item.words)) for item in found)
    return len(_VALIDATION.findall(words(text[:_LONGEST]))) > in_keys


def _step(metric: str, place: dict[str, int]) -> int | None:
    """Return the number of the step; a step within an epoch has no known number in the run."""
    if metric in ("epoch_time", "accuracy"):
        return place.get("epoch")
    return None if len(place) > 1 else next(iter(place.values()), None)


def _values(
    item: Quantity, place: dict[str, int], line: list[Quantity], training: bool
) -> Iterator[_Found]:
    """Yield what a quantity states, if it is certain; `training`: the line has a training value."""
    item = _with_unit_of_key(item)
    if item.total:
        return
    if _ACCURACY.fullmatch(item.words):
        if not training or _VALIDATION.search(item.words):
            yield from _accuracy(item)
    elif _VALIDATION.search(item.words):
        return
    elif not item.unit:
        yield from _plain(item)
    elif item.unit in _SECONDS:
        metric = _time_metric(item, place, line)
        if metric:
            yield _Found(metric, scaled(item.value, _SECONDS[item.unit]))
    elif item.unit in ("GiB", "MiB") and _MEMORY.fullmatch(item.words):
        yield _Found("memory", scaled(item.value, 1.0 if item.unit == "GiB" else 1 / 1024))
    else:
        yield from _rate(item, place, line)


def _with_unit_of_key(item: Quantity) -> Quantity:
    """Return a quantity whose key names the unit (`time_ms`, `tok/sec`) with that unit."""
    match = None if item.unit else _KEY_UNIT.fullmatch(item.words)
    if match is None:
        return item
    key, unit, per = match.groups()
    if per:
        return item._replace(words=key or "rate", unit=plain_unit(f"{unit}/{per}"))
    # A time needs a key: `10 s`, but not `steps: 10`.
    unit = plain_unit(unit)
    return item._replace(words=key, unit=unit) if key and unit in _SECONDS else item


def _plain(item: Quantity) -> Iterator[_Found]:
    if _LOSS.fullmatch(item.words):
        yield _Found("loss", item.value)
    elif _LR.fullmatch(item.words):
        yield _Found("learning_rate", item.value)
    elif _NORM.fullmatch(item.words):
        yield _Found("grad_norm", item.value)


def _accuracy(item: Quantity) -> Iterator[_Found]:
    if item.unit == "%" or (not item.unit and item.words.endswith(" percent")):
        yield _Found("accuracy", scaled(item.value, 0.01))
    elif not item.unit and item.value <= 1 and "." in item.text:
        yield _Found("accuracy", item.value)


def _time_metric(item: Quantity, place: dict[str, int], line: list[Quantity]) -> str:
    """Return the metric of a time with a unit; empty if it is not certain."""
    key = item.words
    # `1 min 30 s`, `3 s ± 1 s`
    if any(one.unit in _SECONDS and not one.words for one in line):
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
    if not _TIME.fullmatch(item.words):
        before = line[: _position(item, line)]
        return "step_time" if before and "step" in _place(before[-1:]) else ""
    # `time 12 s` of a step may be that since the beginning.
    return "step_time" if place.keys() == {"step"} and item.unit == "ms" else ""


def _position(item: Quantity, line: list[Quantity]) -> int:
    return next((n for n, one in enumerate(line) if one[1:3] == item[1:3]), 0)


def _rate(item: Quantity, place: dict[str, int], line: list[Quantity]) -> Iterator[_Found]:
    scope: Scope = "unknown"
    is_known = place or any(_LOSS.fullmatch(one.words) for one in line)
    if item.value <= 0 or not _RATE.fullmatch(item.words) or not (item.words or is_known):
        return
    if item.each in ("gpu", "device"):
        scope = "per_gpu"
    elif item.each:
        scope = "per_rank"
    elif _TOTAL.search(item.words):
        scope = "global"
    if item.unit in _RATES:
        yield _Found(_RATES[item.unit], item.value, scope)
    elif item.unit in ("step/s", "ms/step", "s/step"):
        yield _Found("step_time", _time(item))
    elif item.unit in ("it/s", "ms/it", "s/it"):
        yield _Found("iteration_time", _time(item), "unknown")


def _time(item: Quantity) -> float:
    """Return the time [s] of a step that a rate states."""
    over = item.unit.partition("/")[0]
    return scaled(item.value, _SECONDS[over]) if over in _SECONDS else 1 / item.value
