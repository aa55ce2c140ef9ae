"""MetricLogger of torchvision, DETR, DeiT, MAE, DINO: `Epoch: [0]  [ 20/4572]  eta: ..`.

`time` is the mean of the last 20 iterations [s]. Time, memory (printed in MiB, stored in GiB) and
loss are those of the printing rank; `img/s` is the rate of its one GPU. `Epoch: [0] Total time`
contains the mean over the epoch, and `Training time` is that of the whole job; both are in whole
seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import CLOCK, NUMBER, VALUE, number, seconds

# A number at the end of its line may be truncated; only the last field ends the line.
_LAST = rf"({NUMBER})"
_VALUE = rf"{VALUE}(?=\s)"
# DINOv2 has no epochs: `Training  [ 20/125000]`. LAVIS prints `Train: data epoch: [0]`, also for
# its evaluations.
_HEAD = r"(?:Epoch|Train: data epoch): \[(\d{1,9})(?:/\d{1,9})?\]"
_PLACE = re.compile(rf"(?:{_HEAD}|Training)\s{{1,4}}\[ *(\d{{1,12}})/(\d{{1,12}})\]\s+eta: ")
# One pass for all fields: a search for each of the six fields would begin at the line's start.
_FIELD = re.compile(rf"\s(?:(time|lr|loss|img/s|iter_time): {_VALUE}|max mem: {_LAST})")
_METRICS = {
    "time": "step_time",
    "iter_time": "step_time",
    "img/s": "samples_per_second",
    "loss": "loss",
    "lr": "learning_rate",
    "": "memory",
}
_SCALE = {"memory": 2.0**-10}
_SCOPES: Mapping[str, Scope] = {
    "step_time": "per_rank",
    "samples_per_second": "per_gpu",
    "loss": "per_rank",
    "learning_rate": "per_rank",
    "memory": "per_rank",
}
_ORDER = tuple(_SCOPES.items())
_EPOCH_END = re.compile(rf"{_HEAD} Total time: ({CLOCK})(?: \({_VALUE} s / it\)|$)")
_TRAINING_END = re.compile(rf"(?:^|\s)Training time:? ({CLOCK})$")
# Number of iterations in the window of a meter.
_WINDOW = 20


class TorchVision:
    """Parser of the logger's lines; remembers the last line of the epoch."""

    title = "torchvision's references, DETR, DeiT, MAE, DINO, LAVIS"
    literals = (b"]  eta: ", b"] eta: ", b"]\teta: ", b"] Total time: ", b"Training time ")
    sample = (
        "Epoch: [0]  [  20/100]  eta: 0:00:22  lr: 0.1000  img/s: 932.5 (812.3)  "
        "loss: 6.9125 (6.9321)  time: 0.2744  data: 0.0085  max mem: 20480\n"
        "Epoch: [0] Total time: 0:00:27 (0.2731 s / it)\n"
        "Training time 0:00:31\n"
    )
    states: Mapping[str, Scope] = {
        **_SCOPES,
        "epoch_time": "per_rank",
        "time_to_train": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._last = 0
        self._per_epoch = 1

    def read(self, line: Line) -> Iterable[Hit | Unreadable]:
        """Return the values of an iteration, or the times of an epoch or of the training."""
        text = line.text
        place = _PLACE.search(text)
        if place is not None:
            return self._iteration(place, _fields(text[place.end() :]))
        return self._others(text)

    def _others(self, text: str) -> Iterator[Hit]:
        epoch = _EPOCH_END.search(text)
        if epoch is not None:
            yield from self._epoch(epoch)
            return
        end = _TRAINING_END.search(text)
        took = seconds(end[1]) if end else None
        if took is not None:
            yield Hit("time_to_train", took, "global", once="training")

    def _iteration(self, place: re.Match[str], found: Mapping[str, str]) -> list[Hit | Unreadable]:
        epoch, done, total = int(place[1] or 0), int(place[2]), int(place[3])
        if "step_time" not in found:
            return [Unreadable()]
        steps = min(_WINDOW, max(1, done - self._last))
        self._last, self._per_epoch = done, max(1, total)
        step = epoch * total + done
        hits: list[Hit | Unreadable] = []
        for metric, scope in _ORDER:
            value = _value(metric, found.get(metric))
            if value is None:
                continue
            if metric == "step_time":
                hits.append(Hit(metric, value, scope, step, steps=steps))
            else:
                hits.append(Hit(metric, value, scope, step))
        return hits

    def _epoch(self, end: re.Match[str]) -> Iterator[Hit]:
        took, mean = seconds(end[2]), number(end[3] or "")
        if took is not None:
            yield Hit("epoch_time", took, "per_rank", int(end[1]))
        if mean is not None:
            yield Hit("step_time", mean, "per_rank", steps=self._per_epoch, variant="mean")
        self._last = 0


def _fields(text: str) -> dict[str, str]:
    """Return the first value of each metric."""
    found: dict[str, str] = {}
    for name, value, memory in _FIELD.findall(text):
        found.setdefault(_METRICS[name], value or memory)
    return found


def _value(metric: str, text: str | None) -> float | None:
    value = number(text) if text else None
    return None if value is None else value * _SCALE.get(metric, 1.0)
