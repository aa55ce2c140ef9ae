"""Metrics by the names under which programs log them: TensorBoard, CSV, Weights & Biases."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from hpc_train.logs.event_file import MARK
from hpc_train.logs.formats.base import Coded, Hit, Unreadable
from hpc_train.logs.formats.number import COUNTABLE, countable, number, quotient, scaled
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

# The name under which a program logs a value -> its metric, unit and scope.
#
# These are the columns of `metrics.csv` and of a history of Weights & Biases, and the tags of
# TensorBoard. Means over an epoch and validation losses are not among them.


class LoggedMetric(NamedTuple):
    """The metric of a name; `is_rate`: it is the inverse of the logged value."""

    metric: str
    scope: Scope
    scale: float = 1.0
    is_rate: bool = False

    def value(self, logged: float) -> float | None:
        """Return a logged value in the unit of the metric; None if a rate is not positive."""
        if self.is_rate:
            return quotient(1, logged) if logged > 0 else None
        return scaled(logged, self.scale)


_NAMES: tuple[tuple[re.Pattern[str], LoggedMetric], ...] = tuple(
    (re.compile(pattern), metric)
    for pattern, metric in (
        (
            r"(?:train(?:ing)?[_/ ])?loss(?:_step)?|reduced_train_loss|Loss/train",
            LoggedMetric("loss", "per_rank"),
        ),
        # Megatron-LM, torchtitan.
        (r"lm loss|loss_metrics/global_avg_loss", LoggedMetric("loss", "global")),
        (r"(?:train[_/])?epoch_time", LoggedMetric("epoch_time", "per_rank")),
        (r"train_step_timing(?: in s)?|iteration-time", LoggedMetric("step_time", "global")),
        (r"(?:train[_/])?step_time(?:_s)?", LoggedMetric("step_time", "per_rank")),
        (
            r"(?:train[_/])?(?:samples|images)_per_sec(?:ond)?",
            LoggedMetric("samples_per_second", "unknown"),
        ),
        (
            r"(?:train[_/])?tokens_per_sec(?:ond)?",
            LoggedMetric("tokens_per_second", "unknown"),
        ),
        (
            r"train\|device/batches_per_sec",
            LoggedMetric("step_time", "per_rank", is_rate=True),
        ),
        (r"train\|device/samples_per_sec", LoggedMetric("samples_per_second", "per_gpu")),
        (
            r"train\|device/items_per_sec|throughput\(tps\)",
            LoggedMetric("tokens_per_second", "per_gpu"),
        ),
        (r"train\|device/flops_per_sec", LoggedMetric("tflops", "per_gpu", 1e-12)),
        (r"train\|device/mfu", LoggedMetric("mfu", "per_gpu")),
        (r"mfu\(%\)", LoggedMetric("mfu", "per_gpu", 1e-2)),
        (r"TFLOPS_per_GPU", LoggedMetric("tflops", "per_gpu")),
        (r"memory/max_reserved\(GiB\)", LoggedMetric("memory", "per_rank")),
        (
            r"lr(?:-[\w/]+)?|(?:train/)?learning[_-]rate",
            LoggedMetric("learning_rate", "global"),
        ),
        (r"(?:train/)?grad[_-]norm", LoggedMetric("grad_norm", "global")),
        (
            r"(?:val|test|eval)(?:_|/|_epoch_)acc(?:uracy)?(?:_epoch)?|Accuracy/(?:val|test)",
            LoggedMetric("accuracy", "global"),
        ),
        (r"eval_top1", LoggedMetric("accuracy", "global", 1e-2)),
    )
)


def logged_metric(name: str) -> LoggedMetric | None:
    """Return the metric of a name; None if it is unknown."""
    return next((metric for pattern, metric in _NAMES if pattern.fullmatch(name)), None)


# TensorBoard's event files, as the lines `tfevents STEP TAG = VALUE` of `records.event_file`.
#
# The tags are those of Lightning, of Hugging Face's Trainer, Megatron-LM (`lm loss`,
# `iteration-time`), torchtitan (`throughput(tps)`, `loss_metrics/global_avg_loss`) and of PyTorch's
# tutorials (`Loss/train`), and names as in tables of metrics (`logged_metric`). Times are
# in seconds. A tag without a stated unit and scope, such as `throughput`, is not read.

_LINE = re.compile(MARK + r" (-?\d{1,20}) ([^\n]{1,500}) = ([-+.\deEnaif]{1,40})")


class TensorBoard(Coded):
    """Parser of the scalars of an event file."""

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the scalar of a line, if its tag is known."""
        match = _LINE.fullmatch(line.text)
        metric = match and _of_tag(match[2])
        if not match or not metric:
            return
        step, value = int(match[1]), number(match[3])
        if value is None:
            # `not_finite` finds the others.
            if metric.metric == "loss" and not match[2].endswith("loss"):
                yield Hit("not_finite", 1.0, "per_rank", variant="loss")
            return
        value = metric.value(value)
        if value is not None:
            at = step if 0 <= step < COUNTABLE else None
            yield Hit(metric.metric, value, metric.scope, at)


@lru_cache(1024)
def _of_tag(tag: str) -> LoggedMetric | None:
    return logged_metric(tag)


# Tables of metrics as CSV: Lightning's metrics.csv, NeMo's, timm's, and a history of wandb.
#
# A row contains values that were logged together; the other cells are empty. Times are in seconds.
# The columns `device/..` of the ThroughputMonitor are rates of one GPU; losses are those of the
# rank that writes the file. Columns with means over an epoch and validation losses are omitted.

_ROW = re.compile(r"[-+.\deEnaif]{0,40}(?:,[-+.\deEnaif]{0,40}){1,400}")
_EPOCHS = "epoch"
_OF_WANDB = "_step"


class MetricsCsv(Coded):
    """Parser of the tables; remembers the columns."""

    def __init__(self) -> None:
        self.wants_next = False
        self._width = 0
        self._columns: list[tuple[int, LoggedMetric]] = []
        self._epoch = 0
        self._step: int | None = None

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the cells of a row with a known column name."""
        text = line.text
        cells = text.split(",")
        if _is_header(cells):
            self._begin(cells)
            self.wants_next = True
        elif self.wants_next and len(cells) == self._width:
            yield from self._hits(cells)
        elif self.wants_next and _ROW.fullmatch(text):
            yield Unreadable()
        elif text:
            self.wants_next = False

    def _begin(self, names: list[str]) -> None:
        self._width, places = len(names), {name: place for place, name in enumerate(names)}
        own = (place for name, place in places.items() if name.endswith("/global_step"))
        # W&B's `_step` counts calls of `wandb.log`, not steps.
        self._step = places.get("step", next(own, places.get("global_step", places.get(_OF_WANDB))))
        self._epoch = places.get(_EPOCHS, self._step or 0)
        named = ((place, logged_metric(name)) for place, name in enumerate(names))
        self._columns = [(place, column) for place, column in named if column is not None]

    def _hits(self, cells: list[str]) -> Iterator[Hit]:
        epoch = cells[self._epoch]
        step = _step(epoch if self._step is None else cells[self._step], epoch)
        for place, column in self._columns:
            value = _value(column, cells[place])
            if value is not None:
                yield Hit(column.metric, value, column.scope, step)


def _is_header(cells: Sequence[str]) -> bool:
    if _OF_WANDB in cells:
        return any(map(logged_metric, cells))
    return _EPOCHS in cells and ("step" in cells or "eval_top1" in cells)


def _step(stated: str, epoch: str) -> int | None:
    step = _whole(stated)
    return _whole(epoch) if step is None else step


def _value(column: LoggedMetric, cell: str) -> float | None:
    value = number(cell) if cell else None
    return None if value is None else column.value(value)


def _whole(cell: str) -> int | None:
    value = number(cell)
    return int(value) if value is not None and 0 <= value < 1e15 else None


# The CSV export of a chart of Weights & Biases: `"Step","RUN - METRIC","RUN - METRIC__MIN", ...`.
#
# The metrics are those of `logged_metric`. The columns `__MIN` and `__MAX` are the bounds
# of the drawn line and are not read. A file with the steps of several runs is not read, because a
# log is one run.

_COLUMN = re.compile(r"([^\n]{1,300}) - ([^\n]{1,200}?)(__MIN|__MAX)?")
_STEPS = ("step", "_step", "global_step", "trainer/global_step", "train/global_step")
_LONGEST = 1 << 20


class WandbChart(Coded):
    """Parser of such a file; remembers the columns."""

    def __init__(self) -> None:
        self.wants_next = False
        self._width = 0
        self._columns: list[tuple[int, LoggedMetric]] = []
        self._has_steps = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the cells of a row with a known metric."""
        cells = _cells(line.text)
        charted = charted_columns(cells)
        if charted:
            self._begin(cells, charted)
        elif self.wants_next and len(cells) == self._width:
            yield from self._hits(cells)
        elif line.text:
            self.wants_next = False

    def _begin(self, names: list[str], charted: Mapping[str, Mapping[str, int]]) -> None:
        self._width, self._has_steps = len(names), names[0].lower() in _STEPS
        (places, *others) = charted.values()
        named = ((place, logged_metric(name)) for name, place in places.items())
        self._columns = [(place, metric) for place, metric in named if metric is not None]
        self.wants_next = not others and bool(self._columns)

    def _hits(self, cells: list[str]) -> Iterator[Hit]:
        step = countable(number(cells[0])) if self._has_steps else None
        step = None if step is None or step < 0 else step
        for place, metric in self._columns:
            logged = number(cells[place]) if cells[place] else None
            value = None if logged is None else metric.value(logged)
            if value is not None:
                yield Hit(metric.metric, value, metric.scope, step)


def charted_columns(names: list[str]) -> dict[str, dict[str, int]]:
    """Return the columns of each run in a chart by the name of their metric; none of other tables.

    Every column but the first is one of a run, and some are bounds.
    """
    found = [_COLUMN.fullmatch(name) for name in names[1:]]
    matches = [match for match in found if match is not None]
    if len(matches) < len(found) or not any(match[3] for match in matches):
        return {}
    charted: dict[str, dict[str, int]] = {}
    for place, match in enumerate(matches, start=1):
        if not match[3]:
            charted.setdefault(match[1], {})[match[2]] = place
    return charted


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text[:_LONGEST]]), [])
    except csv.Error:
        return []
