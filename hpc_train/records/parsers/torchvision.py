"""MetricLogger of torchvision, DETR, DeiT, MAE, DINO: `Epoch: [0]  [ 20/4572]  eta: ..`.

`time` is the mean of the last 20 iterations [s] of the printing rank, as are memory (MiB there, GiB
here) and loss; `img/s` is the rate of its one GPU. `Epoch: [0] Total time` states the mean over the
epoch, and `Training time` is that of the whole job, both in whole seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsers.base import Hit, Unreadable
from hpc_train.records.parsers.clock import CLOCK, seconds
from hpc_train.records.parsers.number import NUMBER, VALUE, number

# A number that ends its line may have been cut; only the last field has nothing behind it.
_LAST = rf"({NUMBER})"
_VALUE = rf"{VALUE}(?=\s)"
# DINOv2 knows no epochs: `Training  [ 20/125000]`. LAVIS writes `Train: data epoch: [0]`, and the
# same of its evaluations.
_HEAD = r"(?:Epoch|Train: data epoch): \[(\d{1,9})(?:/\d{1,9})?\]"
_PLACE = re.compile(rf"(?:{_HEAD}|Training)\s{{1,4}}\[ *(\d{{1,12}})/(\d{{1,12}})\]\s+eta: ")
# One pass for all of them: of a line with six fields, each was looked for from the start.
_FIELD = re.compile(rf"\s(?:(?P<name>(?:iter_)?time|img/s|loss|lr): {_VALUE}|max mem: {_LAST})")
_METRICS = {
    "time": "step_time",
    "iter_time": "step_time",
    "img/s": "samples_per_second",
    "loss": "loss",
    "lr": "learning_rate",
    None: "memory",
}
_ORDER = tuple(dict.fromkeys(_METRICS.values()))
_MIB = 2.0**-10
_EPOCH_END = re.compile(rf"{_HEAD} Total time: ({CLOCK})(?: \({_VALUE} s / it\)|$)")
_TRAINING_END = re.compile(rf"(?:^|\s)Training time:? ({CLOCK})$")
# As many iterations as a meter remembers.
_WINDOW = 20


class TorchVision:
    """Parser of the logger's lines; remembers the last one of the epoch."""

    title = "torchvision's references, DETR, DeiT, MAE, DINO, LAVIS"
    literals = (b"]  eta: ", b"] eta: ", b"]\teta: ", b"] Total time: ", b"Training time ")
    sample = (
        "Epoch: [0]  [  20/100]  eta: 0:00:22  lr: 0.1000  img/s: 932.5 (812.3)  "
        "loss: 6.9125 (6.9321)  time: 0.2744  data: 0.0085  max mem: 20480\n"
        "Epoch: [0] Total time: 0:00:27 (0.2731 s / it)\n"
        "Training time 0:00:31\n"
    )
    states: Mapping[str, Scope] = {
        "step_time": "per_rank",
        "samples_per_second": "per_gpu",
        "loss": "per_rank",
        "learning_rate": "per_rank",
        "memory": "per_rank",
        "epoch_time": "per_rank",
        "time_to_train": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._last = 0
        self._per_epoch = 1

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield an iteration, or the times of an epoch or of all."""
        text = line.text
        place = _PLACE.search(text)
        if place is not None:
            yield from self._iteration(text, place)
            return
        epoch = _EPOCH_END.search(text)
        if epoch is not None:
            yield from self._epoch(epoch)
            return
        end = _TRAINING_END.search(text)
        took = seconds(end[1]) if end else None
        if took is not None:
            yield Hit("time_to_train", took, "global", once="training")

    def _iteration(self, text: str, place: re.Match[str]) -> Iterator[Hit | Unreadable]:
        epoch, done, total = (int(part or 0) for part in place.groups())
        found: dict[str, str] = {}
        for match in _FIELD.finditer(text, place.end()):
            name, value, memory = match.groups()
            found.setdefault(_METRICS[name], memory if name is None else value)
        if "step_time" not in found:
            yield Unreadable()
            return
        steps = min(_WINDOW, max(1, done - self._last))
        self._last, self._per_epoch = done, max(1, total)
        step = epoch * total + done
        for metric in _ORDER:
            read = number(found[metric]) if metric in found else None
            if read is not None:
                read *= _MIB if metric == "memory" else 1.0
                mean_of = steps if metric == "step_time" else 1
                yield Hit(metric, read, self.states[metric], step, steps=mean_of)

    def _epoch(self, end: re.Match[str]) -> Iterator[Hit]:
        took, mean = seconds(end[2]), number(end[3] or "")
        if took is not None:
            yield Hit("epoch_time", took, "per_rank", int(end[1]))
        if mean is not None:
            yield Hit("step_time", mean, "per_rank", steps=self._per_epoch, variant="mean")
        self._last = 0
