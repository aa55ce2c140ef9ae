"""NeMo: the bar of 1.x (`.., train_step_timing in s=3.13]`), the lines of 2.x (`.. in s: 3.13 |`).

Times are the seconds of an optimiser step. All values are global, except TFLOP/s and tokens per
second (per GPU), and memory (of the printing rank; printed in B, stored in GiB). For a bar without
`train_step_timing`, the time is the mean between two of its states (see `bar_iteration_times`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import number, scaled
from hpc_train.records.parsing.progress_bar import BarClock, bar_of

_LINE = re.compile(
    r"Training epoch (?P<epoch>\d{1,9}), iteration (?P<done>\d{1,12})/(?P<total>\d{1,12}) \| "
)
_FIELD = re.compile(r"([A-Za-z_][\w ]{1,40}?)(?:=|: )([-+.\w]{1,32})")
_EPOCH = re.compile(r"Epoch (\d{1,9}):")
_METRICS: dict[str, tuple[str, Scope, float]] = {
    "train_step_timing in s": ("step_time", "global", 1.0),
    "train_step_timing": ("step_time", "global", 1.0),
    "reduced_train_loss": ("loss", "global", 1.0),
    "global_batch_size": ("global_batch_size", "global", 1.0),
    "lr": ("learning_rate", "global", 1.0),
    "grad_norm": ("grad_norm", "global", 1.0),
    "gradient_norm": ("grad_norm", "global", 1.0),
    "tokens_per_sec_per_gpu": ("tokens_per_second", "per_gpu", 1.0),
    "TFLOPS_per_GPU": ("tflops", "per_gpu", 1.0),
    "peak_memory_usage": ("memory", "per_rank", 2.0**-30),
}
_TIMINGS = frozenset({"train_step_timing in s", "train_step_timing"})
Fields = dict[str, str]


class Nemo:
    """Parser of both forms; remembers the last bar, which is drawn more than once."""

    title = "NeMo 1.x and 2.x"
    literals = (b"train_step_timing", b"reduced_train_loss")
    sample = (
        "Training epoch 0, iteration 7/99 | lr: 5e-06 | global_batch_size: 32 | global_step: 7 | "
        "reduced_train_loss: 2.78 | train_step_timing in s: 0.189 | consumed_samples: 256"
    )
    states: Mapping[str, Scope] = {
        "step_time": "global",
        "loss": "global",
        "global_batch_size": "global",
        "learning_rate": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._last: tuple[int | None, str] | None = None
        self._clock = BarClock()

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a line, or of a bar with new values."""
        text = line.text
        started = _LINE.search(text)
        if started is not None:
            fields = _fields(text[started.end() :])
            place = int(started["epoch"]) * (int(started["total"]) + 1) + int(started["done"])
            yield from _hits(fields, _step(fields, place))
            return
        if "reduced_train_loss=" not in text:
            # The search for a bar takes ten times as long.
            return
        bar = bar_of(text)
        if bar is None or "reduced_train_loss=" not in bar.fields:
            if text.startswith("Epoch "):
                yield Unreadable()
            return
        fields = _fields(bar.fields)
        shown = fields.get("global_step", "")
        # tqdm rounds 123456 to 1.23e+5, which is the same for many steps.
        last = (line.rank, f"{bar.done}" if "e" in shown else shown or f"{bar.done}")
        if last != self._last:
            match = _EPOCH.search(text)
            epoch = int(match[1]) if match else 0
            # Without a total, the bar of a later epoch lacks the run's step; `global_step` has it.
            step = _step(fields, epoch * bar.total + bar.done)
            took = self._clock.interval(line.rank, epoch, bar)
            if took is not None and not _TIMINGS & fields.keys():
                yield Hit("step_time", took.step_time, "global", step, steps=took.steps)
            yield from _hits(fields, step)
        self._last = last


def _fields(text: str) -> Fields:
    return {name.strip(): value for name, value in _FIELD.findall(text)}


def _step(fields: Fields, place: int) -> int:
    shown = fields.get("global_step", "")
    value = None if "e" in shown else number(shown)
    return place if value is None or not 0 <= value < 1e15 else int(value)


def _hits(fields: Fields, step: int) -> Iterator[Hit]:
    for name, (metric, scope, scale) in _METRICS.items():
        value = number(fields[name]) if name in fields else None
        if value is not None:
            yield Hit(metric, scaled(value, scale), scope, step)
