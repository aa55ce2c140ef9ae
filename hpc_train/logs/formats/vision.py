"""Programs that train vision models: detectron2, torchvision, Ultralytics, OpenCLIP."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.logs.formats.base import Coded, Hit, Intervals, Unreadable
from hpc_train.logs.formats.number import (
    CLOCK,
    NUMBER,
    VALUE,
    number,
    scaled,
    scan_object,
    seconds,
    whole,
)
from hpc_train.logs.line import Line

# detectron2 and maskrcnn_benchmark: `eta: 0:03:49  iter: 19  total_loss: 5.9  .. time: 0.82  ..`.

_PLACE = re.compile(r"(?:^|\s)iter: (\d{1,12})\s")
# A number at the end of its line may be truncated; only the last fields of a line end it.
_FIELD = re.compile(
    rf"\s(?:(?:total_)?(loss|last_time|time): {VALUE}(?=\s)"
    rf"|(lr|max_mem(?=: [^\s]{{1,60}}M)|max mem): ({NUMBER}))"
)
_MEDIAN = re.compile(rf"\stime: {VALUE}(?=\s) \(")
_END = re.compile(rf"Total training time: ({CLOCK})(?: \(({NUMBER}) s / it\)| \(|$)")
_SPEED = re.compile(
    rf"Overall training speed: (\d{{1,12}}) iterations in {CLOCK} \(({NUMBER}) s / it\)"
)
# Means are printed with four digits.
_ROUNDING = 0.01
# Number of iterations that a median covers, or that are in the window of a meter.
_WINDOW = 20
_MARKS = ("total_loss: ", " loss: ", "max_mem: ", "max mem: ")


class Detectron(Coded):
    """Parser of the lines of both programs."""

    def __init__(self) -> None:
        self._intervals = Intervals()
        self._last = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an iteration."""
        text = line.text
        place = _PLACE.search(text)
        if place is None:
            yield from self._of_file(text) if text.startswith("{") else self._end(text)
            return
        if not any(mark in text for mark in _MARKS):
            return
        step = self._last = int(place[1])
        steps = min(_WINDOW, self._intervals.since(line, step))
        found: dict[str, str] = {}
        for key, value, other, last in _FIELD.findall(text):
            found.setdefault(key or other.replace("_", " "), value or last)
        if "last_time" not in found and "time" in found:
            is_median = _MEDIAN.search(text) is not None
            found["median" if is_median else "mean"] = found["time"]
            steps = steps if is_median else step + 1
        yield from self.stated(found, step, steps)

    def _end(self, text: str) -> Iterator[Hit]:
        end, speed = _END.search(text), _SPEED.search(text)
        took = seconds(end[1]) if end else None
        if took is not None:
            yield Hit("time_to_train", took, "global", once="end")
        mean = number((speed[2] if speed else end and end[2]) or "")
        if mean is None:
            return
        steps = int(speed[1]) if speed else self._last
        if speed or self._is_of_all(took or 0, mean):
            yield Hit("step_time", mean, "per_rank", steps=steps, variant="mean")

    def _is_of_all(self, took: float, mean: float) -> bool:
        """Whether the mean covers all iterations that were run, up to the last one logged."""
        configured = took / mean if mean > 0 else 0
        missing = configured * (1 + _ROUNDING) - self._last
        return 0 <= missing <= _WINDOW + _ROUNDING * configured * 2

    def _of_file(self, text: str) -> Iterator[Hit | Unreadable]:
        found = scan_object(text, 0)
        if found is None:
            yield Unreadable()
            return
        log, _ = found
        step = whole(log.get("iteration"))
        if step is not None:
            median = {"last_time": log.get("time"), "loss": log.get("total_loss")}
            yield from self.stated({**median, "lr": log.get("lr")}, step)


# MetricLogger of torchvision, DETR, DeiT, MAE, DINO: `Epoch: [0]  [ 20/4572]  eta: ..`.

# DINOv2 has no epochs: `Training  [ 20/125000]`. LAVIS prints `Train: data epoch: [0]`, also for
# its evaluations.
_HEAD = r"(?:Epoch|Train: data epoch): \[(\d{1,9})(?:/\d{1,9})?\]"
_TV_PLACE = re.compile(rf"(?:{_HEAD}|Training)\s{{1,4}}\[ *(\d{{1,12}})/(\d{{1,12}})\]\s+eta: ")
# One pass for all fields: a search for each of the six fields would begin at the line's start.
_TV_FIELD = re.compile(
    rf"\s(?:(?:iter_)?(time|lr|loss|img/s): {VALUE}(?=\s)|max (mem): ({NUMBER}))"
)
_EPOCH_END = re.compile(rf"{_HEAD} Total time: ({CLOCK})(?: \({VALUE}(?=\s) s / it\)|$)")
_TRAINING_END = re.compile(rf"(?:^|\s)Training time:? ({CLOCK})$")


class TorchVision(Coded):
    """Parser of the logger's lines; remembers the last line of the epoch."""

    def __init__(self) -> None:
        self._last = 0
        self._per_epoch = 1

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an iteration, or the times of an epoch or of the training."""
        text = line.text
        if place := _TV_PLACE.search(text):
            found: dict[str, str] = {}
            for key, value, memory, size in _TV_FIELD.findall(text, place.end()):
                found.setdefault(key or memory, value or size)
            if "time" not in found:
                yield Unreadable()
                return
            epoch, done, total = int(place[1] or 0), int(place[2]), int(place[3])
            steps = min(_WINDOW, max(1, done - self._last))
            self._last, self._per_epoch = done, max(1, total)
            yield from self.stated(found, epoch * total + done, steps)
        elif end := _EPOCH_END.search(text):
            took, mean = seconds(end[2]), number(end[3] or "")
            if took is not None:
                yield Hit("epoch_time", took, "per_rank", int(end[1]))
            if mean is not None:
                yield Hit("step_time", mean, "per_rank", steps=self._per_epoch, variant="mean")
            self._last = 0
        elif end := _TRAINING_END.search(text):
            took = seconds(end[1])
            if took is not None:
                yield Hit("time_to_train", took, "global", once="training")


# Ultralytics YOLO, YOLOv5 to YOLO26: `1/100  2.31G  1.2 ..  640: 100%|###| 8/8 [00:12<00:00, ..]`.

_N = r"(?:\d{1,9}(?:\.\d{0,9})?(?:e[+-]\d\d)?|nan|inf)"
_EPOCH = re.compile(
    r"(?:^|\s)(?P<epoch>\d{1,6})/(?P<last>\d{1,6}) {2,20}[\d.]{1,8}[MG]B?"
    rf"(?: {{1,20}}{_N}){{2,12}}: {{1,4}}100%"
)
_TQDM = re.compile(
    r"(?:\|[^|]{0,400}\|)? {0,4}(?P<done>\d{1,9})/(?P<total>\d{1,9}) \[(?P<time>[\d:]{4,12})<"
    r"[^,\]]{0,12}(?:, {1,4}(?P<rate>\d{1,9}\.\d{1,4})(?P<of>it/s|s/it))?"
)
# The remainder of a longer text may follow the time.
_OWN = re.compile(
    r" [━─╸]{4,40} (?P<done>\d{1,9})/(?P<total>\d{1,9}) "
    r"(?:(?P<rate>\d{1,9}\.\d{1,4})(?P<of>it/s|s/it) |[\d.]{1,12}K?(?:it/s|s/it) )?"
    r"(?P<time>\d{1,2}\.\d(?=s)|(?:\d{1,3}:)?\d{1,2}:\d\d)"
)
_ALL = re.compile(r"^\s{0,8}\d{1,6} epochs completed in (?P<hours>\d{1,6}\.\d{3}) hours\.?")
_PRECISE = 10
"""The smallest time, in units of its last digit, that is precise to 5 %."""


class Ultralytics(Coded):
    """Parser of the tables that the trainers print; remembers the last epoch that was yielded."""

    def __init__(self) -> None:
        self._stated: tuple[str, str, str] | None = None
        self._first = 1

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the mean of an epoch, from the first drawing of its finished bar."""
        epoch = _EPOCH.search(line.text)
        if epoch is None:
            if end := _ALL.search(line.text):
                self._stated = None
                if float(end["hours"]) * 1000 >= _PRECISE:
                    yield Hit("time_to_train", scaled(float(end["hours"]), 3600.0), "global")
            return
        bar = _TQDM.match(line.text, epoch.end()) or _OWN.match(line.text, epoch.end())
        if bar is None or bar["done"] != bar["total"] or bar["total"] == "0":
            return
        stated, took = (epoch["epoch"], epoch["last"], bar["total"]), _took(bar)
        if stated == self._stated or took is None:
            return
        self._stated = stated
        iterations, number_ = int(bar["total"]), int(epoch["epoch"])
        self._first = min(self._first, number_)
        step = (number_ + 1 - self._first) * iterations
        yield Hit("step_time", took / iterations, "per_rank", step, steps=iterations)
        yield Hit("epoch_time", took, "per_rank", number_)


def _took(bar: re.Match[str]) -> float | None:
    """Return the time [s] of a finished bar, if it is precise enough."""
    if "." in bar["time"]:
        return float(bar["time"]) if float(bar["time"]) * 10 >= _PRECISE else None
    took = 0.0
    for part in bar["time"].split(":"):
        took = took * 60 + int(part)
    rate = float(bar["rate"] or 0)
    if took < _PRECISE:
        return None
    # tqdm cuts the time to whole seconds, and states the rate of the whole bar at its end.
    precise = int(bar["total"]) * (rate if bar["of"] == "s/it" else 1 / rate) if rate else 0.0
    return precise if took <= precise < took + 1 else took


# open_clip: `Train Epoch: 0 [ 512/9600 (5%)] Data (t): .. Batch (t): 0.5, 1024/s, 128/s/gpu ..`.

_CLIP_PLACE = re.compile(r"Train Epoch: (\d{1,9}) \[ *(\d{1,15})/(\d{1,15}) \(\d{1,3}%\)\]")
_BATCH = re.compile(
    rf" Batch \(t\):? (?P<time>{NUMBER})(?=[, ])(?:, (?P<all>{NUMBER})/s)?"
    rf"(?:, (?P<one>{NUMBER})/s/gpu)?"
)
_CLIP_FIELD = re.compile(rf" (?:(?:Contrastive_)?([Ll]oss)|(LR)): ({NUMBER})(?=\s)")


class OpenClip(Coded):
    """Parser of the lines; remembers the global batch and the last step."""

    def __init__(self) -> None:
        self._epoch = -1
        self._batch = 0
        self._last = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an interval."""
        text = line.text
        place = _CLIP_PLACE.search(text)
        if place is None:
            return
        batch = _BATCH.search(text, place.end())
        if batch is None:
            yield Unreadable()
            return
        rate, time = number(batch["all"] or ""), number(batch["time"])
        about = rate * time if rate and time else None
        epoch, seen, total = (int(part) for part in place.groups())
        step = self._step(epoch, seen, total, about)
        steps = step - self._last if step is not None and 0 < self._last < step else 1
        self._last = step or 0
        found = batch.groupdict("")
        for loss, lr, value in _CLIP_FIELD.findall(text):
            found.setdefault(loss.lower() or lr, value)
        yield from self.stated(found, step, steps)

    def _step(self, epoch: int, seen: int, total: int, about: float | None) -> int | None:
        if epoch != self._epoch:
            # A log that begins within an epoch does not show the size of a batch.
            is_start = about is None or about / 2 < seen < about * 2
            self._epoch, self._batch = epoch, seen if is_start else 0
        if not self._batch or seen % self._batch:
            return None
        return epoch * (total // self._batch) + seen // self._batch
