"""MMEngine and MMCV 1.x: `Epoch(train)  [1][50/1000]  lr: ..  time: 0.33  data_time: ..  loss: ..`.

The mean of MMEngine is over the window of the LogProcessor: 10 iterations unless the configuration
at the start of the log sets another number. The mean of MMCV is over the iterations since the
previous line. Both number iterations within the epoch, or within the run
(`Iter(train) [ 50/80000]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.logs.formats.base import Coded, Field, Hit, RunningStep, StepPosition, Unreadable
from hpc_train.logs.formats.number import NUMBER, finite, number, scaled, scan_object, whole
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

_TRAIN = re.compile(
    r"\b(?P<by>Epoch|Iter)(?P<mode>\(train\))? {1,8}(?:\[ *(?P<epoch>\d{1,9})\])?"
    r"\[ *(?P<done>\d{1,12})/(?P<total>\d{1,12})\](?=\s)"
)
_VALID = re.compile(
    r"\b(?:Epoch|Iter)\((?:val|test)\) {1,8}(?:\[ *(?P<epoch>\d{1,9})\])?"
    r"\[ *(?P<done>\d{1,12})(?:/(?P<total>\d{1,12}))?\](?=\s)"
)
_FIELD = re.compile(
    rf"[\s,](?P<key>[a-zA-Z][\w/.-]{{1,60}}): (?P<value>{NUMBER})(?=(?P<end>,|\s|$))"
)
# Four decimals, or the configured number of digits.
_DECIMALS = re.compile(r"\.\d{4}")
_WINDOW = re.compile(r"\blog_processor ?= ?dict\([^\n]{0,400}?\bwindow_size=(\d{1,6})\b")
_DEFAULT = 10
_FIELDS = {
    "time": Field("step_time", "per_rank", mean=True),
    "loss": Field("loss", "per_rank", mean=True),
    "grad_norm": Field("grad_norm", "global", mean=True),
    "lr": Field("learning_rate", "global"),
    "memory": Field("memory", "per_rank", 2.0**-10),
}
_ACCURACIES = {"accuracy/top1": 1e-2, "accuracy_top-1": 1e-2, "acc/top1": 1.0, "top1_acc": 1.0}


class MmEngine(Coded):
    """Parser of the text lines; remembers the window and the previous line."""

    def __init__(self) -> None:
        self._window = _DEFAULT
        self._last: tuple[str | None, int] | None = None

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a training line, or the accuracy of a validation."""
        text = line.text
        if place := _TRAIN.search(text):
            yield from self._step(text, place)
        elif place := _VALID.search(text):
            yield from _accuracy(text, place)
        elif window := _WINDOW.search(text):
            self._window = max(1, int(window[1]))

    def _step(self, text: str, place: re.Match[str]) -> Iterator[Hit | Unreadable]:
        found = {m["key"]: m for m in _FIELD.finditer(text, place.end())}
        if "time" not in found or "data_time" not in found:
            if "lr" in found:
                yield Unreadable()
            return
        epoch, done, total = place["epoch"], int(place["done"]), int(place["total"])
        step = done if epoch is None else (int(epoch) - 1) * total + done
        of_mmcv = place["mode"] is None or ", time: " in text
        steps = self._since(epoch, done) if of_mmcv else min(self._window, step)
        for key, match in found.items():
            field, value = _FIELDS.get(key), number(match["value"])
            # Without a GPU, the memory is 0.
            if field is None or not value or not _whole(match):
                continue
            scope: Scope = "global" if key == "loss" and of_mmcv else field.scope
            mean = steps if field.mean else 1
            yield Hit(field.metric, scaled(value, field.scale), scope, step, steps=mean)

    def _since(self, epoch: str | None, done: int) -> int:
        before, self._last = self._last, (epoch, done)
        if before is None:
            return 1
        return max(1, done - before[1] if before[0] == epoch and before[1] < done else done)


def _whole(match: re.Match[str]) -> bool:
    """Return whether a number is complete."""
    return bool(match["end"] or _DECIMALS.search(match["value"]))


def _accuracy(text: str, place: re.Match[str]) -> Iterator[Hit]:
    if place["total"] not in (None, place["done"]):
        return
    for match in _FIELD.finditer(text, place.end()):
        factor, value = _ACCURACIES.get(match["key"]), number(match["value"])
        if factor is not None and value is not None and _whole(match):
            epoch = None if place["epoch"] is None else int(place["epoch"])
            yield Hit("accuracy", scaled(value, factor), "global", epoch)


# JSON lines of MMEngine (vis_data/scalars.json) and MMCV 1.x (.log.json): one object per log line.
#
# Values, units and scopes are those of the text lines: `time` [s] and `loss` of the printing rank
# (MMCV reduces the loss over the ranks), `lr`, `grad_norm`, `memory` (printed in MiB, stored in
# GiB). MMEngine numbers iterations within the run (`step`), MMCV within the epoch, with `"mode":
# "train"`. The file does not contain the number of iterations that a mean covers. For MMCV, the
# mean is assumed to cover the iterations since the previous line.


class MmEngineJson(Coded):
    """Parser of such a file; remembers the step."""

    def __init__(self) -> None:
        self._running = RunningStep()
        self._last: tuple[object, int] | None = None
        self._epochs = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a line of training, or the accuracy of a validation."""
        text = line.text.strip()
        if not text.startswith("{"):
            return
        found = scan_object(text, 0)
        if found is None:
            yield Unreadable()
            return
        log, end = found
        if end == len(text) and "data_time" in log and "lr" in log and "loss" in log:
            yield from self._step(log)
        elif end == len(text) and ("data_time" in log or log.get("mode") == "val"):
            yield from _json_accuracy(log)

    def _step(self, log: Mapping[str, object]) -> Iterator[Hit]:
        steps, step, of_mmcv = 1, whole(log.get("step")), log.get("mode") == "train"
        done = whole(log.get("iter"))
        if of_mmcv and done is not None:
            step, steps = self._at(log.get("epoch"), done)
        for key, field in _FIELDS.items():
            value = finite(log.get(key))
            # Without a GPU, the memory is 0.
            if not value:
                continue
            scope: Scope = "global" if key == "loss" and of_mmcv else field.scope
            mean = steps if field.mean else 1
            yield Hit(field.metric, scaled(value, field.scale), scope, step, steps=mean)

    def _at(self, epoch: object, done: int) -> StepPosition:
        """Return the position of an iteration; its number may continue over the epochs."""
        before, self._last = self._last, (epoch, done)
        if before is None:
            return self._running.at(0, done)._replace(since=1)
        self._epochs += epoch != before[0] and done <= before[1]
        return self._running.at(self._epochs, done)


def _json_accuracy(log: Mapping[str, object]) -> Iterator[Hit]:
    epoch = whole(log.get("epoch", log.get("step")))
    for key, factor in _ACCURACIES.items():
        value = finite(log.get(key))
        if value is not None:
            yield Hit("accuracy", scaled(value, factor), "global", epoch)
