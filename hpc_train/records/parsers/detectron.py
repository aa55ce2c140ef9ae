"""detectron2 and maskrcnn_benchmark: `eta: 0:03:49  iter: 19  total_loss: 5.9  .. time: 0.82  ..`.

Losses are reduced over the ranks (median of the last 20 iterations). Times are seconds of an
iteration on the printing rank; memory is that of the printing rank (printed in MiB, stored in
GiB). maskrcnn_benchmark prints the median of 20 and the mean in brackets. New versions of
detectron2 print `last_time`, which is then used; old versions print only the mean since the start,
variant `running_average`. At the end, both programs print the time of the training and the mean
time of an iteration. maskrcnn_benchmark divides by the configured number of iterations, so its mean
is used only if that number was run. A line of detectron2's metrics.json contains the same values,
medians of the last 20.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import (
    CLOCK,
    NUMBER,
    VALUE,
    finite,
    number,
    scaled,
    scan_object,
    seconds,
    whole,
)
from hpc_train.records.parsing.step_counts import Intervals

# A number at the end of its line may be truncated; only the last fields of a line end it.
_LAST = rf"({NUMBER})"
_VALUE = rf"{VALUE}(?=\s)"
_PLACE = re.compile(r"(?:^|\s)iter: (\d{1,12})\s")
_TIME = re.compile(rf"\stime: {_VALUE}(?P<mean> \()?")
_LAST_TIME = re.compile(rf"\slast_time: {_VALUE}")
_OTHERS: dict[str, tuple[re.Pattern[str], Scope, float]] = {
    "loss": (re.compile(rf"\s(?:total_)?loss: {_VALUE}"), "global", 1.0),
    "learning_rate": (re.compile(rf"\slr: {_LAST}"), "global", 1.0),
    "memory": (re.compile(rf"\smax(?:_mem: {_LAST}M| mem: {_LAST})"), "per_rank", 2.0**-10),
}
_END = re.compile(rf"Total training time: ({CLOCK})(?: \(({NUMBER}) s / it\)| \(|$)")
_SPEED = re.compile(
    rf"Overall training speed: (\d{{1,12}}) iterations in {CLOCK} \(({NUMBER}) s / it\)"
)
_KEYS = {"time": "step_time", "total_loss": "loss", "lr": "learning_rate"}
# Means are printed with four digits.
_ROUNDING = 0.01
# Number of iterations that a median covers.
_WINDOW = 20
_MARKS = ("total_loss: ", " loss: ", "max_mem: ", "max mem: ")


class Detectron:
    """Parser of the lines of both programs."""

    title = "detectron2 (also metrics.json), maskrcnn_benchmark"
    literals = (
        b"  iter: ",
        b"\titer: ",
        b"Total training time: ",
        b"Overall training speed: ",
        b'"total_loss": ',
    )
    sample = (
        "[05/01 10:00:00 d2.utils.events]:  eta: 0:03:49  iter: 19  total_loss: 5.922  "
        "loss_cls: 1.709  time: 0.8241  last_time: 0.8012  data_time: 0.1461  "
        "last_data_time: 0.0100  lr: 3.9962e-05  max_mem: 2048M"
    )
    states: Mapping[str, Scope] = {
        "step_time": "per_rank",
        "loss": "global",
        "learning_rate": "global",
        "memory": "per_rank",
    }
    wants_next = False

    def __init__(self) -> None:
        self._intervals = Intervals()
        self._last = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an iteration."""
        text = line.text
        place = _PLACE.search(text)
        if place is None:
            yield from _of_file(text) if text.startswith("{") else self._end(text)
            return
        if not any(mark in text for mark in _MARKS):
            return
        step = self._last = int(place[1])
        yield from self._step_time(line, step)
        for metric, (pattern, scope, scale) in _OTHERS.items():
            found = pattern.search(text)
            value = number(found[found.lastindex or 1]) if found else None
            if value is not None:
                yield Hit(metric, scaled(value, scale), scope, step)

    def _step_time(self, line: Line, step: int) -> Iterator[Hit]:
        last, time = _LAST_TIME.search(line.text), _TIME.search(line.text)
        found = last or time
        value = number(found[1]) if found else None
        since = min(_WINDOW, self._intervals.since(line, step))
        if value is None:
            return
        if last or time is None:
            yield Hit("step_time", value, "per_rank", step)
        elif time["mean"]:
            yield Hit("step_time", value, "per_rank", step, steps=since)
        else:
            yield Hit(
                "step_time", value, "per_rank", step, steps=step + 1, variant="running_average"
            )

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
        return (
            0 <= configured * (1 + _ROUNDING) - self._last <= _WINDOW + _ROUNDING * configured * 2
        )


def _of_file(text: str) -> Iterator[Hit | Unreadable]:
    found = scan_object(text, 0)
    if found is None:
        yield Unreadable()
        return
    line, _ = found
    step = whole(line.get("iteration"))
    if step is None:
        return
    for key, metric in _KEYS.items():
        value = finite(line.get(key))
        if value is not None:
            yield Hit(metric, value, "per_rank" if key == "time" else "global", step)
