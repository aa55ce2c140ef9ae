"""Tables of metrics as CSV: Lightning's metrics.csv, NeMo's, timm's, and a history of wandb.

A row contains values that were logged together; the other cells are empty. Times are in seconds.
The columns `device/..` of the ThroughputMonitor are rates of one GPU; losses are those of the rank
that writes the file. Columns with means over an epoch and validation losses are omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.logged_metrics import LoggedMetric, logged_metric
from hpc_train.records.parsing.printed_numbers import number

_ROW = re.compile(r"[-+.\deEnaif]{0,40}(?:,[-+.\deEnaif]{0,40}){1,400}")
_EPOCHS = "epoch"
_OF_WANDB = "_step"


class MetricsCsv:
    """Parser of the tables; remembers the columns."""

    title = "PyTorch Lightning's metrics.csv, timm's summary.csv, a history of Weights & Biases"
    literals = (b"epoch,", b",epoch", b"step,", b",step")
    sample = (
        "epoch,epoch_time,step,train_loss_step,train|device/batches_per_sec,val_acc\n"
        "0,,49,2.31,8.0,\n0,12.5,99,,,0.61\n"
    )
    states: Mapping[str, Scope] = {
        "loss": "per_rank",
        "step_time": "per_rank",
        "epoch_time": "per_rank",
        "accuracy": "global",
    }

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
