"""Metrics by the names under which programs log them: TensorBoard, CSV, Weights & Biases."""

import re
from collections.abc import Iterator

from hpc_train.logs.formats.base import COUNTABLE, Coded, Hit, Measure, Unreadable, number, quotient
from hpc_train.logs.line import Line
from hpc_train.logs.log_file import MARK

_MOST_NAMES = 1024


class _Named(Coded):
    """The keys of its fields are patterns of the names under which programs log a value."""

    def __init__(self) -> None:
        self._known: dict[str, Measure | None] = {}

    def field(self, name: str) -> Measure | None:
        """Return what a name states."""
        if name not in self._known and len(self._known) < _MOST_NAMES:
            matching = (one for key, one in self.fields.items() if re.fullmatch(key, name))
            self._known[name] = next(matching, None)
        return self._known.get(name)

    def hits(self, name: str, value: float | None, step: int | None) -> Iterator[Hit]:
        """Yield what a value states that is logged under a name."""
        field = self.field(name)
        if value is not None and name.endswith("/batches_per_sec"):
            value = quotient(1, value) if value > 0 else None
        if field is not None and value is not None:
            yield field.hit(value, step)


# TensorBoard's event files, as the lines `tfevents STEP TAG = VALUE` of `logs.log_file`.
_LINE = re.compile(MARK + r" (-?\d{1,20}) ([^\n]{1,500}) = ([-+.\deEnaif]{1,40})")


class TensorBoard(_Named):
    """Parser of the scalars of an event file."""

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the scalar of a line, if its tag is known."""
        match = _LINE.fullmatch(line.text)
        field = match and self.field(match[2])
        if not match or not field:
            return
        step, value = int(match[1]), number(match[3])
        # `not_finite` finds the others.
        if value is None and field.metric == "loss" and not match[2].endswith("loss"):
            yield Hit("not_finite", 1.0, "per_rank", variant="loss")
        yield from self.hits(match[2], value, step if 0 <= step < COUNTABLE else None)


# Tables of metrics as CSV: Lightning's metrics.csv, NeMo's, timm's, and a history of wandb.

_ROW = re.compile(r"[-+.\deEnaif]{0,40}(?:,[-+.\deEnaif]{0,40}){1,400}")
# W&B's `_step` counts calls of `wandb.log`, not steps.
_OF_WANDB = "_step"


class MetricsCsv(_Named):
    """Parser of the tables; remembers the names of the columns, and those of step and epoch."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._step = self._epoch = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the cells of a row with a known column name."""
        text = line.text
        cells = text.split(",")
        named = any(map(self.field, cells)) if _OF_WANDB in cells else "epoch" in cells
        if named and (_OF_WANDB in cells or "step" in cells or "eval_top1" in cells):
            self._names, self.wants_next = cells, True
            own = (name for name in cells if name.endswith("/global_step"))
            steps = ("step", *own, "global_step", _OF_WANDB, "epoch")
            self._step = next((cells.index(name) for name in steps if name in cells), 0)
            self._epoch = cells.index("epoch") if "epoch" in cells else self._step
        elif self.wants_next and len(cells) == len(self._names):
            step = _whole(cells[self._step])
            step = _whole(cells[self._epoch]) if step is None else step
            for name, cell in zip(self._names, cells, strict=True):
                yield from self.hits(name, number(cell), step)
        elif self.wants_next and _ROW.fullmatch(text):
            yield Unreadable()
        elif text:
            self.wants_next = False


def _whole(cell: str) -> int | None:
    value = number(cell)
    return int(value) if value is not None and 0 <= value < COUNTABLE else None
