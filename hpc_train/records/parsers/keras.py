"""Keras fit: `1875/1875 [====] - 4s 2ms/step - loss: 0.29 - accuracy: 0.91 - val_loss: 0.2`.

| part | metric | unit | scope |
|---|---|---|---|
| `12ms/step`, at the end of an epoch | step_time, mean without the first step | s | per rank |
| `45us/sample` | samples_per_second, mean of the epoch | 1/s | per rank |
| `4s` | epoch_time, with the validation, in whole seconds | s | per rank |
| loss, accuracy | loss; accuracy, variant training: means of the epoch | 1 | per rank |
| val_loss, val_accuracy | loss, variant validation; accuracy | 1 | per rank |

One process may drive several devices; a step is then a step of all of them. Only the last state of
an epoch's bar is used: earlier states show running means and the remaining time. If the line has
`val_` values, its time includes the validation, and the step time has the variant with_validation.
A step time with a single digit (`2ms/step`) has the variant rounded. Lines of verbose=2 and of
Keras 1 to 3 are read. After a line `Train on 60000 samples`, steps are samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number, scaled

_HEAD = re.compile(
    r"\s{0,12}(?P<done>\d{1,12})/(?P<total>\d{1,12}|Unknown)"
    r"(?: (?P<bar>\[[=>.]{1,60}\]|[━╸ ]{1,60}))?"
)
_TIME = re.compile(
    r"(?P<clock>\d{1,7})s(?: (?P<each>\d{1,7})(?P<unit>us|ms|s)/(?P<of>step|sample|epoch))?"
)
_EACH = re.compile(r"(?P<each>\d{1,7})(?P<unit>us|ms|s)/(?P<of>step|sample)")
# It prints four decimals: a number with fewer is truncated.
_VALUE = re.compile(r"(?P<name>[A-Za-z]\w{0,80}): (?P<value>-?\d{1,15}\.\d{4}(?:e[+-]\d\d)?)")
_SCALE = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LONGEST = 4000
_EPOCH = re.compile(r"^\s{0,4}Epoch (?P<epoch>\d{1,7})/(?P<epochs>\d{1,7})\s*$")
_TRAIN_ON = re.compile(r"^\s{0,4}Train on (?P<samples>\d{1,12}) samples\b")
_ACCURACY = re.compile(r"(?:val_)?(?:(?:sparse_)?(?:categorical|binary)_)?acc(?:uracy)?")
_LOSS = re.compile(r"(?:val_)?loss")


class Keras:
    """Parser of the lines of fit; keeps the current epoch."""

    title = "Keras, tf.keras: Model.fit"
    literals = (b"Epoch ", b"Train on ", b"s/step", b"s/sample", b" - loss: ")
    sample = (
        "Epoch 2/10\n"
        "469/469 [==============================] - 6s 13ms/step - loss: 0.2912 - acc: 0.9161\n"
        "Train on 60000 samples, validate on 10000 samples\n"
        "Epoch 1/10\n"
        "60000/60000 [==============================] - 3s 45us/sample - loss: 0.2 - acc: 0.93 - "
        "val_loss: 0.1512 - val_acc: 0.9512\n"
    )
    states: Mapping[str, Scope] = {
        "step_time": "per_rank",
        "samples_per_second": "per_rank",
        "epoch_time": "per_rank",
        "loss": "per_rank",
        "accuracy": "per_rank",
    }
    wants_next = False

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._samples = 0
        self._redrawn = False
        self._over = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values at the end of an epoch; the bar of an evaluation follows it."""
        text = line.text
        if head := _EPOCH.match(text):
            self._epoch, self._redrawn, self._over = int(head["epoch"]), False, False
        elif train := _TRAIN_ON.match(text):
            self._samples = int(train["samples"])
        elif self._epoch is not None and (found := line_of(text)) and self._ends(found):
            yield from self._times(self._epoch, found)
            yield from _values(self._epoch, found)
            self._epoch = None

    def _ends(self, found: KerasLine) -> bool:
        """Return whether this is the last drawing of the epoch."""
        if not found.ended or not found.last:
            self._redrawn, self._over = True, self._over or not found.last
            return False
        if not (found.doubtful and self._redrawn) or self._over or _validated(found):
            return True
        # In an epoch below one second, the final line looks like that of the last step before it.
        self._over = found.total * found.each < 1
        return False

    def _times(self, epoch: int, found: KerasLine) -> Iterator[Hit]:
        if found.clock:
            yield Hit("epoch_time", float(found.clock), "per_rank", epoch)
        if not found.each:
            return
        variant = "rounded" if found.digits == 1 else ""
        variant = "with_validation" if _validated(found) else variant
        if found.of == "sample" or found.total == self._samples:
            rate = scaled(1 / found.each, 1.0)
            yield Hit("samples_per_second", rate, "per_rank", epoch, variant=variant)
        else:
            steps = max(1, found.total)
            step = epoch * steps if found.total else None
            yield Hit("step_time", found.each, "per_rank", step, steps=steps, variant=variant)


def _validated(found: KerasLine) -> bool:
    return any(name.startswith("val_") for name in found.values)


def _values(epoch: int, found: KerasLine) -> Iterator[Hit]:
    for name, value in found.values.items():
        if _LOSS.fullmatch(name):
            variant = "validation" if name.startswith("val_") else ""
            yield Hit("loss", value, "per_rank", epoch, variant=variant)
        elif _ACCURACY.fullmatch(name):
            variant = "" if name.startswith("val_") else "training"
            yield Hit("accuracy", value, "per_rank", epoch, variant=variant)


class KerasLine(NamedTuple):
    """The values of a line; `each` [s] is the time of a step or of a sample, 0 if not printed.

    `ended`: it shows no remaining time. `last`: it is not drawn again, because the next state would
    overwrite it. `doubtful`: Keras 3 draws the last step like the end of the epoch.
    """

    total: int
    ended: bool
    last: bool
    doubtful: bool
    clock: int
    each: float
    digits: int
    of: str
    values: dict[str, float]


def line_of(text: str) -> KerasLine | None:
    """Return the values of a line; None if it is not a line of Keras."""
    text, last = text[:_LONGEST].rstrip("\b "), not text.endswith("\b")
    head = _HEAD.match(text)
    if head is None and not text.lstrip().startswith("- "):
        return None
    parts = [part.strip() for part in text[head.end() if head else 0 :].split(" - ")]
    # The remainder of a longer previous state follows two or more spaces.
    parts = [part.removeprefix("- ").partition("  ")[0] for part in parts]
    times = [match for part in parts if (match := _TIME.fullmatch(part) or _EACH.fullmatch(part))]
    clock = next((match for match in times if "clock" in match.groupdict()), None)
    if clock is None and not any(part.startswith("ETA: ") for part in parts):
        return None
    each = next((match for match in times if match["each"] and match["of"] != "epoch"), None)
    values = {
        match["name"]: value
        for part in parts
        if (match := _VALUE.fullmatch(part)) and (value := number(match["value"])) is not None
    }
    bar = (head["bar"] or "") if head else ""
    return KerasLine(
        total=int(head["total"]) if head and head["total"].isdecimal() else 0,
        ended=clock is not None and (head is None or head["done"] == head["total"]),
        last=last,
        doubtful="━" in bar and clock is not None and clock["clock"] == "0",
        clock=int(clock["clock"]) if clock else 0,
        each=scaled(int(each["each"]), _SCALE[each["unit"]]) if each else 0.0,
        digits=len(each["each"]) if each else 0,
        of=each["of"] if each else "",
        values=values,
    )
