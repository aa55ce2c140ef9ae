"""MMEngine and MMCV 1.x: `Epoch(train)  [1][50/1000]  lr: ..  time: 0.33  data_time: ..  loss: ..`.

The mean of MMEngine is over the window of the LogProcessor: 10 iterations unless the configuration
at the start of the log sets another number. The mean of MMCV is over the iterations since the
previous line. Both number iterations within the epoch, or within the run
(`Iter(train) [ 50/80000]`).

The JSON lines of MMEngine (vis_data/scalars.json) and MMCV 1.x (.log.json) are one object per line
of the log, with its values, units and scopes: `time` [s] and `loss` of the printing rank (MMCV
reduces the loss over the ranks), `lr`, `grad_norm`, `memory` (printed in MiB, stored in GiB).
MMEngine numbers their iterations within the run (`step`), MMCV within the epoch, with `"mode":
"train"`. The file does not contain the number of iterations that a mean covers: of MMCV, the mean
is assumed to cover the iterations since the previous line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.logs.formats.base import Coded, Hit, RunningStep, StepPosition, Unreadable
from hpc_train.logs.formats.number import NUMBER, finite, number, scaled, scan_object, whole
from hpc_train.logs.line import Line

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
_ACCURACIES = {"accuracy/top1": 1e-2, "accuracy_top-1": 1e-2, "acc/top1": 1.0, "top1_acc": 1.0}


class _OpenMmLab(Coded):
    def _values(
        self, found: Mapping[str, float], step: int | None, steps: int, *, of_mmcv: bool
    ) -> Iterator[Hit]:
        for key, value in found.items():
            field = self.fields.get(key)
            # Without a GPU, the memory is 0.
            if field is not None and value:
                field = field._replace(scope="global") if key == "loss" and of_mmcv else field
                yield field.hit(value, step, steps)


def _accuracies(found: Mapping[str, float], epoch: int | None) -> Iterator[Hit]:
    for key, value in found.items():
        if key in _ACCURACIES:
            yield Hit("accuracy", scaled(value, _ACCURACIES[key]), "global", epoch)


class MmEngine(_OpenMmLab):
    """Parser of the text lines; remembers the window and the previous line."""

    def __init__(self) -> None:
        self._window = _DEFAULT
        self._last: tuple[str | None, int] | None = None

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a training line, or the accuracy of a validation."""
        text = line.text
        place = _TRAIN.search(text)
        valid = None if place else _VALID.search(text)
        if window := None if place or valid else _WINDOW.search(text):
            self._window = max(1, int(window[1]))
        if not (at := place or valid):
            return
        shown = {m["key"]: m for m in _FIELD.finditer(text, at.end())}
        found = {
            key: value
            for key, m in shown.items()
            if (value := number(m["value"])) is not None
            and (m["end"] or _DECIMALS.search(m["value"]))
        }
        epoch, done = at["epoch"], int(at["done"])
        if valid:
            if valid["total"] in (None, valid["done"]):
                yield from _accuracies(found, None if epoch is None else int(epoch))
        elif not {"time", "data_time"} <= shown.keys():
            if "lr" in shown:
                yield Unreadable()
        else:
            step = done if epoch is None else (int(epoch) - 1) * int(at["total"]) + done
            of_mmcv = at["mode"] is None or ", time: " in text
            steps = self._since(epoch, done) if of_mmcv else min(self._window, step)
            yield from self._values(found, step, steps, of_mmcv=of_mmcv)

    def _since(self, epoch: str | None, done: int) -> int:
        before, self._last = self._last, (epoch, done)
        if before is None:
            return 1
        return max(1, done - before[1] if before[0] == epoch and before[1] < done else done)


class MmEngineJson(_OpenMmLab):
    """Parser of a file of JSON lines; remembers the step."""

    def __init__(self) -> None:
        self._running = RunningStep()
        self._last: tuple[object, int] | None = None
        self._epochs = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a line of training, or the accuracy of a validation."""
        text = line.text.strip()
        if not text.startswith("{"):
            return
        scanned = scan_object(text, 0)
        if scanned is None:
            yield Unreadable()
            return
        log, end = scanned
        found = {key: value for key in log if (value := finite(log[key])) is not None}
        of_mmcv, done = log.get("mode") == "train", whole(log.get("iter"))
        if end < len(text):
            return
        if {"data_time", "lr", "loss"} <= log.keys():
            step, steps = whole(log.get("step")), 1
            if of_mmcv and done is not None:
                step, steps = self._at(log.get("epoch"), done)
            in_order = {key: found[key] for key in self.fields if key in found}
            yield from self._values(in_order, step, steps, of_mmcv=of_mmcv)
        elif "data_time" in log or log.get("mode") == "val":
            in_order = {key: found[key] for key in _ACCURACIES if key in found}
            yield from _accuracies(in_order, whole(log.get("epoch", log.get("step"))))

    def _at(self, epoch: object, done: int) -> StepPosition:
        """Return the position of an iteration; its number may continue over the epochs."""
        before, self._last = self._last, (epoch, done)
        if before is None:
            return self._running.at(0, done)._replace(since=1)
        self._epochs += epoch != before[0] and done <= before[1]
        return self._running.at(self._epochs, done)
