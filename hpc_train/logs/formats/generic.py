"""Hand-written lines of training loops: `key: value`, `key=value`, JSON, and times with a unit.

The last parser: it reads only logs in which no other parser found a measurement, and a report says
so. A value is read only if its words and its unit leave no doubt:

- `step_time` and `epoch_time`, per rank: a time with a unit, of a named step or epoch
  (`step time: 51 ms`, `Epoch 0 took 0.5s`, `took 0:02:05`); the key may have the
  unit (`step_time_ms`, `ms/batch`). A time
  without a word behind a separator at the end of the line is that of the epoch that it names.
- `samples_per_second` and `tokens_per_second`: a rate of images, samples or sequences, or of
  tokens. The scope is unknown, unless the line says `total` or `per GPU`.
- `iteration_time`, scope unknown: `it/s` and `s/it` of an unknown loop; beside a loss, step_time.
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
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from hpc_train.logs.formats.base import (
    COUNTABLE,
    OF_LINE,
    Coded,
    Hit,
    finite,
    number,
    scaled,
    seconds,
)
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

_VALID = r"(?:val|valid|validat(?:e|ion|ing)|eval|evaluat(?:e|ion|ing)|test|testing|dev)"
_VALIDATION = re.compile(rf"\b{_VALID}\b")
# `Eval step 20: loss 2.9`: the counter between the word and the value is no key.
_COUNTED = re.compile(
    rf"{_VALID}(?: (?:set|loop|phase|at|of|on|after|for|in|the)){{0,3}}"
    r"(?: (?:step|epoch|batch|iter|iteration)s?)?"
)
_COUNTER = re.compile(r"(?<![\d/.])(\d{1,9}) ?/ ?(\d{1,9})(?![\d/.])")
# `loss: [2.5, 2.7]`: a value of each rank or head.
_VECTOR = re.compile(
    r"[\[(]\s{0,4}[-+\d.eE]{1,24}(?:(?:\s{0,4},\s{0,4}|\s{1,4})[-+\d.eE]{1,24}){1,999}\s{0,4}[\])]"
)
# Thousands, or a decimal comma; of a rate or in ms the former.
_AMBIGUOUS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
# Lines of other work, of plans, and of sums over a whole job.
_OTHER = re.compile(
    r"\b(?:download|upload|sav(?:e|ed|ing)|load(?:ed|ing)|compil|checkpoint|expected|target|estimat"
    r"|limit|timeout|best|warm-?up|infer|generat|tokeniz|preprocess|previous|baseline|https?:"
    r"|namespace\(|error|exception|file \"|peak|theoretical|prefetch)"
    r"|%\|",
    re.IGNORECASE,
)
_RANK = re.compile(r"\W{0,3}(?:rank|worker|gpu)[ :#=]{0,2}(\d{1,6})\b", re.IGNORECASE)
# An accuracy beside a loss is that of the training, unless its key says otherwise.
_TRAINING = re.compile(rf"\b(?:train|training|loss|{_VALID} acc|{_VALID} accuracy)\b")
_ACCURACY = re.compile(
    rf"(?:(?:avg|average|mean|{_VALID}) ){{0,4}}(?:top ?1 )?(?:acc|accuracy)( percent)?"
)
_MEMORY = re.compile(
    r"(?:max |gpu |cuda |used |allocated ){0,4}(?:mem|memory)(?: (?:used|allocated))?"
)
# `Epoch 1/5 - loss: 1.0 - 12.5s`: a time without a word, behind a separator at the end.
_LAST_TIME = re.compile(r"(?: [-|>\u2013]{1,2} |[,;|] ?|\t|  )\d[\d.,]{0,20} ?[a-z]{1,12}\s{0,8}\Z")
# In a line with `412,5 ms`, 2.482 may be two thousand.
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(?:0,\d+|\d{1,9},(?:\d{1,2}|\d{4,9}))(?![\d,])")
_GROUPED_BY_POINT = re.compile(r"[1-9]\d{0,2}\.\d{3}")
# Behind a word of a time: `0:02:13`.
_CLOCKED = re.compile(
    r"(?i)(\b(?:took|takes|in|time|duration)[ :=(]{1,3})(\d{1,4}:\d\d:\d\d(?:\.\d{1,9})?)"
)
_COMPANIONS = frozenset({"learning_rate", "grad_norm", "memory"})
_LONGEST = 4096


class Generic(Coded):
    """Parser of the lines above; remembers how many steps an epoch of the training has."""

    def __init__(self) -> None:
        self._steps = ""

    def read(self, line: Line) -> list[Hit]:
        """Return the values of a line that are certain."""
        text = _VECTOR.sub(" ", line.text)
        text = _CLOCKED.sub(lambda found: f"{found[1]}{seconds(found[2]):g} s", text)
        if _OTHER.search(text) or self._counts_others(text):
            return []
        found = list(_json(text)) if text.startswith("{") else list(quantities(text))
        if found and not found[-1].words and found[-1].unit in SECONDS and _LAST_TIME.search(text):
            found[-1] = found[-1]._replace(words="time")
        if _DECIMAL_COMMA.search(text):
            found = [item for item in found if not _GROUPED_BY_POINT.fullmatch(item.text)]
        place, rank = place_of(found), _rank(line)
        inner = (item for item in found if item.total and not item.words.endswith("epoch"))
        if "epoch" in place and any(inner):
            # `epoch 1 | 200/2983 batches`
            place.setdefault("step", 0)
        if not text.startswith("{") and _names_validation(text, found):
            found = [item for item in found if _ACCURACY.fullmatch(item.words)]
            found = [item._replace(words=f"test {item.words}") for item in found]
        training = _TRAINING.search(words(text[:_LONGEST])) is not None
        values = [one for item in found if (one := _meaning(item, place, found, training))]
        kinds = Counter(one.metric for one in values)
        if not kinds.keys() - _COMPANIONS:
            return []
        return [
            replace(one, step=_step(one.metric, place), rank=rank)
            for one in values
            if kinds[one.metric] == 1
        ]

    def _counts_others(self, text: str) -> bool:
        """Whether a line without an epoch counts to another total than those with one.

        It is a step of an evaluation between the epochs.
        """
        counter = _COUNTER.search(text)
        if counter is None:
            return False
        if "poch" in text[: counter.start()]:
            between = text[text.rindex("poch", 0, counter.start()) : counter.start()]
            # `Epoch 1/5` counts epochs.
            self._steps = counter[2] if re.search(r"\d", between) else self._steps
            return False
        return bool(self._steps) and counter[2] != self._steps and "poch" not in text


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


def _rank(line: Line) -> int:
    """Return the rank that the text begins with, if no prefix states one."""
    match = _RANK.match(line.text) if line.rank is None else None
    return OF_LINE if match is None else int(match[1])


def _names_validation(text: str, found: list[Quantity]) -> bool:
    """Whether a line is that of a validation: the word is not only in the keys of some values."""
    keys = [item.words for item in found if not _COUNTED.fullmatch(item.words)]
    in_keys = sum(len(_VALIDATION.findall(key)) for key in keys)
    return len(_VALIDATION.findall(words(text[:_LONGEST]))) > in_keys


def _step(metric: str, place: dict[str, int]) -> int | None:
    """Return the number of the step; a step within an epoch has no known number in the run."""
    if metric in ("epoch_time", "accuracy"):
        return place.get("epoch")
    return None if len(place) > 1 else next(iter(place.values()), None)


def _meaning(
    item: Quantity, place: dict[str, int], line: list[Quantity], training: bool
) -> Hit | None:
    """Return what a quantity states, if certain; `training`: the line has a value of it."""
    item = with_unit_of_key(item)
    key, unit = item.words, item.unit
    is_loss, is_accuracy = not unit and LOSS.fullmatch(key), _ACCURACY.fullmatch(key)
    of_validation = _VALIDATION.search(key)
    ambiguous = _AMBIGUOUS.fullmatch(item.text) and (is_loss or unit == "s")
    if item.total or ambiguous or (of_validation and not is_accuracy):
        return None
    if is_accuracy:
        return None if training and not of_validation else _accuracy(item)
    if not unit:
        metric = next((name for name, known in _PLAIN.items() if known.fullmatch(key)), "")
        return Hit(metric, item.value, "per_rank") if metric else None
    if unit in SECONDS:
        metric = time_metric(item, place, line)
        return Hit(metric, scaled(item.value, SECONDS[unit]), "per_rank") if metric else None
    if unit in ("GiB", "MiB") and _MEMORY.fullmatch(key):
        return Hit("memory", scaled(item.value, 1.0 if unit == "GiB" else 1 / 1024), "per_rank")
    return rate(item, place, line)


def _accuracy(item: Quantity) -> Hit | None:
    if item.unit == "%" or (not item.unit and item.words.endswith(" percent")):
        return Hit("accuracy", scaled(item.value, 0.01), "per_rank")
    is_sure = not item.unit and item.value <= 1 and "." in item.text
    return Hit("accuracy", item.value, "per_rank") if is_sure else None


# A hand-written line -> its numbers, each with the words before it and the unit after it.
#
# Numbers within dates, clocks, versions, addresses, names and decimals with a comma are no numbers.

_LONGEST_LINE = 600
_ITEMS = r"images?|imgs?|pics?|samples?|ex|examples?|tokens?|toks?|seqs?|sequences?"
_STEPS = r"its?|iters?|iterations?|steps?|batch(?:es)?|epochs?"
_TIMES = r"ms|msecs?|millis|milliseconds?|s|secs?|seconds?|mins?|minutes?"
_NUMBER = re.compile(
    r"(?<![\w.])(?<!\d[:/,-])(?<![A-Za-z]-)"
    r"([-+]?(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?)"
    r"(?: ?/ ?(\d{1,15})(?![\w.]))?"
    rf"(?: ?([kKM])? ?((?:{_ITEMS}|{_STEPS})(?: ?/ ?| per )(?:s|secs?|seconds?)"
    rf"|(?:{_TIMES})(?:(?: ?/ ?| per )(?:{_STEPS}))?|wps|GiB|MiB|GB|MB|%|(?<=[kKM]))"
    r"((?: ?/ ?| per )(?:gpu|GPU|device|rank|process|worker))?(?![\w/%=]|: ?\d))?"
    r"(?!\w|%|[.,:/-]\d)"
)
# Units in front of which `k` and `M` stand.
_THOUSANDS = frozenset({"sample/s", "token/s"})
_CLAUSE = re.compile(r"[,;|\[\]{}<>\t\"'#]| [->]+ |  ")
_NO_WORD = re.compile(r"[^a-z0-9]+")


class Quantity(NamedTuple):
    """A number: the words before it in its clause, what it is out of, and its unit.

    `words` are in lower case, with single spaces; `text` is the number as it was printed. `each` is
    the part of the job that a rate belongs to (`gpu`), empty if none is named.
    """

    words: str
    text: str
    value: float
    total: str = ""
    unit: str = ""
    each: str = ""


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of a line, in order; a long line has none."""
    if len(text) > _LONGEST_LINE:
        return
    end = 0
    for match in _NUMBER.finditer(text):
        clause = _CLAUSE.split(text[end : match.start()].rstrip(" :=[(\"'"))[-1]
        end = match.end()
        printed, total, suffix, unit, each = match.groups(default="")
        value = number(printed)
        scale = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}[suffix]
        unit = plain_unit(unit)
        if value is None:
            continue
        part = words(each).rpartition(" ")[2]
        item = Quantity(words(clause), printed, value * scale, total, unit, part)
        if not suffix or with_unit_of_key(item).unit in _THOUSANDS:
            yield item


def words(text: str) -> str:
    """Return the words of a text or a key, in lower case with single spaces."""
    return _NO_WORD.sub(" ", text.lower()).strip()


def plain_unit(unit: str) -> str:
    """Return a unit in one spelling: `images per second` as `image/s`, `msec/it` as `ms/step`."""
    over, _, under = unit.replace(" per ", "/").replace(" ", "").partition("/")
    return _SPELT.get(over, over) + ("/" + _SPELT.get(under, under) if under else "")


_SPELT = {
    word: unit
    for unit, words_ in {
        "ms": "ms msec msecs millis millisecond milliseconds",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "sample": "image images img imgs pic pics sample samples ex example examples"
        " seq seqs sequence sequences",
        "token": "token tokens tok toks",
        "it": "it its iter iters iteration iterations",
        "step": "step steps batch batches",
        "epoch": "epoch epochs",
        "token/s": "wps",
    }.items()
    for word in words_.split()
}


# Quantities of a hand-written line -> times of steps and epochs, and rates, where certain.

MEAN = r"(?:(?:avg|average|mean|train|training|the) ){0,4}"
_STEP = r"(?:step|iter|iteration|batch|minibatch)"
_INDEX = re.compile(rf"(?:.{{0,60}} )?({_STEP}|epoch)(?: (?:no|idx|number))?")
LOSS = re.compile(rf"{MEAN}(?:lm )?loss")
_PLAIN = {
    "loss": LOSS,
    "learning_rate": re.compile(r"lr|learning rate"),
    "grad_norm": re.compile(r"(?:grad|gradient) norm|gnorm"),
}
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
    rf"{MEAN}(?:(?:total|global|overall)(?: |\Z))?(?:throughput|speed|rate|performance|perf"
    r"|training speed|samples|tokens|images)?"
)
_TOTAL = re.compile(r"\b(?:total|global|overall|aggregate)\b")
_KEY_UNIT = re.compile(
    r"\A(.{0,40}?) ?\b(samples?|images?|imgs?|examples?|tokens?|toks?|tok|seqs?|sequences?|its?"
    r"|iters?|iterations?|steps?|wps|ms|msec|s|sec|seconds|min|minutes)"
    r"(?: (?:per )?(s|sec|second|its?|iter|iteration|step|batch|epoch))?"
)
SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
RATES = {"sample/s": "samples_per_second", "token/s": "tokens_per_second"}


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
    unit = plain_unit(unit)
    if unit in RATES:
        return item._replace(words=key or "rate", unit=unit)
    # A time needs a key: `10 s`, but not `steps: 10`.
    return item._replace(words=key, unit=unit) if key and unit in SECONDS else item


def time_metric(item: Quantity, place: dict[str, int], line: list[Quantity]) -> str:
    """Return the metric of a time with a unit; empty if it is not certain."""
    key = item.words
    # `1 min 30 s`, `2 minutes and 3 s`, `3 s ± 1 s`
    if any(one.unit in SECONDS and one.words in ("", "and") for one in line):
        return ""
    if _STEP_TIME.fullmatch(key):
        return "step_time"
    is_duration = _DURATION.fullmatch(key)
    if _EPOCH_TIME.fullmatch(key) or (is_duration and place.keys() == {"epoch"}):
        return "epoch_time"
    # `Step 100 took 3 s` may be the time since the line of step 0, `time 12 s` that of the job.
    if not is_duration or item.unit != "ms":
        return ""
    if _TIME.fullmatch(key):
        return "step_time" if place.keys() == {"step"} else ""
    before = line[: next((n for n, one in enumerate(line) if one[1:3] == item[1:3]), 0)]
    return "step_time" if before and "step" in place_of(before[-1:]) else ""


def rate(item: Quantity, place: dict[str, int], line: list[Quantity]) -> Hit | None:
    """Return the metric of a rate; its scope is unknown, unless the line names it."""
    # The loop that prints a loss is that of the training.
    trains = any(LOSS.fullmatch(one.words) for one in line)
    is_known = item.words or place or trains
    if item.value <= 0 or not _RATE.fullmatch(item.words) or not is_known:
        return None
    scope: Scope = "global" if _TOTAL.search(item.words) else "unknown"
    if item.each:
        scope = "per_gpu" if item.each in ("gpu", "device") else "per_rank"
    if item.unit in RATES:
        return Hit(RATES[item.unit], item.value, scope)
    over, _, under = item.unit.partition("/")
    time = scaled(item.value, SECONDS[over]) if over in SECONDS else 1 / item.value
    if item.unit in ("step/s", "ms/step", "s/step"):
        return Hit("step_time", time, "per_rank")
    if under == "epoch" and over in SECONDS:
        return Hit("epoch_time", time, "per_rank")
    if item.unit in ("it/s", "ms/it", "s/it"):
        return (
            Hit("step_time", time, "per_rank") if trains else Hit("iteration_time", time, "unknown")
        )
    return None
