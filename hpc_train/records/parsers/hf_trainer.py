"""Hugging Face's Trainer, and what prints through it: axolotl, TRL, ms-swift.

A dictionary for each log and one at the end (see `hf_log`), a bar that counts optimiser steps, a
banner, a table of metrics. Times are seconds and everything but memory is global: ranks and nodes
that print the same are counted once. The bar shows a running mean of the last steps. The number
of GPUs is the batch of all over that of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsers.bars import Bar, bar_of
from hpc_train.records.parsers.base import Hit, Unreadable
from hpc_train.records.parsers.hf_log import accuracy_hits, hits_of_log, step_of, summary_hits
from hpc_train.records.parsers.number import NUMBER, countable, number, quotient

_START = re.compile(r"""\{['"](?:loss|train_runtime|eval_loss)['"]: """)
_LOG = re.compile(r"""\{['"][^{}]{0,16384}\}""")
_PAIR = re.compile(r"""['"]([^'"]{1,80})['"]: ?['"]?([^'",}]{1,64})""")
_BEFORE_BAR = re.compile(r"(?:Train(?:ing)?:)? *")
_TABLE = re.compile(
    r"(?:^|>> ) *((?:train|eval)_(?:runtime|samples_per_second|tokens_per_second|accuracy)) *= "
    r"*(\S.{0,40})$"
)
_BANNER = re.compile(
    r"(?:^|>> |- )  ?(Num examples|Total train batch size[^=]{0,80}|Total optimization steps"
    r"|Number of trainable parameters|Instantaneous batch size per device"
    r"|Gradient Accumulation steps) = (" + NUMBER + ")$"
)
_BANNER_METRICS: dict[str, tuple[str, Scope]] = {
    "Num examples": ("examples", "global"),
    "Total train batch size": ("global_batch_size", "global"),
    "Total optimization steps": ("steps", "global"),
    "Number of trainable parameters": ("parameters", "global"),
    "Instantaneous batch size per device": ("batch_size", "per_rank"),
}
_ACCUMULATED = "Gradient Accumulation steps"
# tqdm draws at most ten times a second: of faster steps the bar does not know the last one.
_SLOW_S = 0.2
# What is faster is a download's bar, which counts bytes.
_FASTEST_S = 1e-4


class HfTrainer:
    """Parser of the Trainer's output; remembers how far the run is."""

    title = "Hugging Face Trainer, axolotl, TRL, ms-swift"
    literals = (
        b"'loss': ",
        b'{"loss": ',
        b'{"current_steps": ',
        b"train_runtime",
        b"'eval_loss': ",
        b"it/s]",
        b"s/it]",
        b"***** Running ",
        b"Num examples = ",
        b"Total train batch size",
        b"Gradient Accumulation steps = ",
        b"Total optimization steps",
        b"Number of trainable parameters",
        b"Instantaneous batch size per device",
        b"train_samples_per_second",
        b"train_tokens_per_second",
        b"'eval_accuracy': ",
        b"eval_accuracy  ",
    )
    sample = (
        "***** Running training *****\n"
        "  Num examples = 2,048\n"
        "  Instantaneous batch size per device = 8\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
        "  Gradient Accumulation steps = 1\n"
        "  Total optimization steps = 32\n"
        "  Number of trainable parameters = 124,439,808\n"
        " 31%|###       | 10/32 [00:12<00:26,  1.20s/it]\n"
        "{'loss': 2.41, 'grad_norm': 1.3, 'learning_rate': 5e-05, 'epoch': 0.31}\n"
        "{'train_runtime': 38.7, 'train_samples_per_second': 52.92, "
        "'train_steps_per_second': 0.827, 'train_loss': 2.2, 'epoch': 1.0}\n"
    )
    states: Mapping[str, Scope] = {
        "examples": "global",
        "batch_size": "per_rank",
        "global_batch_size": "global",
        "world_size": "global",
        "steps": "global",
        "parameters": "global",
        "step_time": "global",
        "loss": "global",
        "grad_norm": "global",
        "learning_rate": "global",
        "time_to_train": "global",
        "samples_per_second": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        # The last step that any rank's bar showed, and how many steps there are.
        self._done = 0
        self._total = 0
        self._is_sure = False
        self._step: int | None = None
        self._logged = 0
        self._is_training = True
        self._batch: dict[str, float] = {}

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield what a line states: a bar, a dictionary, both, or a row of a table."""
        text = line.text
        bar = bar_of(text)
        if bar is not None:
            yield from self._bar(text, bar)
        logs = list(_LOG.finditer(text))
        for log in logs:
            yield from self._log(dict(_PAIR.findall(log[0])))
        for start in _START.finditer(text):
            if not any(log.start() == start.start() for log in logs):
                yield Unreadable()
        if " = " in text:
            yield from self._row(text)
        elif "***** Running " in text:
            self._is_training = "training" in text

    def _bar(self, text: str, bar: Bar) -> Iterator[Hit]:
        before = text[bar.free : bar.start]
        if bar.fields or not bar.total or not _BEFORE_BAR.fullmatch(before):
            return
        if (bar.step_time or 1) < _FASTEST_S or not self._is_training_bar(bar):
            return
        since, self._done = bar.done - self._done, max(self._done, bar.done)
        self._step = bar.done if (bar.step_time or 0) > _SLOW_S else None
        if bar.step_time is not None and bar.done:
            yield Hit(
                "step_time",
                bar.step_time,
                "global",
                bar.done,
                steps=max(1, since),
                once=f"bar {bar.done}",
            )

    def _is_training_bar(self, bar: Bar) -> bool:
        # Evaluation draws a bar of the same form inside that of the training, or alone.
        if self._is_sure or self._done < self._total or not self._is_training:
            return bar.total == self._total
        if bar.total != self._total:
            self._done, self._total = 0, bar.total
        return True

    def _log(self, log: dict[str, str]) -> Iterator[Hit]:
        step = step_of(log) or self._step
        is_loss = "loss" in log
        steps = max(1, step - self._logged) if is_loss and step is not None else 1
        hits = list(hits_of_log(log, step, steps))
        if not hits:
            return
        self._is_sure = self._is_sure or self._total > 0
        if is_loss and step is not None:
            self._logged = step
        yield from hits
        speed = number(log.get("train_speed(iter/s)", "")) or 0
        time = quotient(1, speed) if speed > 0 else number(log.get("train_speed(s/it)", ""))
        if time and not self._total:
            yield Hit("step_time", time, "global", step, once=f"speed {step}")
        if hits[0].metric == "time_to_train" and self._total:
            # The time of a step over the whole run, which the rates are too rounded to tell.
            mean = hits[0].value / self._total
            yield Hit(
                "step_time", mean, "global", steps=self._total, variant="mean", once="summary"
            )

    def _row(self, text: str) -> Iterator[Hit]:
        row = _TABLE.search(text)
        if row is not None:
            log = {row[1]: row[2].strip()}
            yield from accuracy_hits(log) if "eval_accuracy" in log else summary_hits(log)
            return
        banner = _BANNER.search(text)
        value = number(banner[2]) if banner and self._is_training else None
        if banner is None or value is None:
            return
        name = banner[1].partition(" (")[0]
        if name == _ACCUMULATED:
            yield from self._world_size(value)
            return
        metric, scope = _BANNER_METRICS[name]
        self._batch[metric] = value
        if metric == "steps":
            self._total, self._is_sure = countable(value) or 0, True
        yield Hit(metric, value, scope, once="banner")

    def _world_size(self, accumulated: float) -> Iterator[Hit]:
        """Yield the number of GPUs that the batch of all is shared by."""
        each = self._batch.get("batch_size", 0) * accumulated
        of_all = self._batch.get("global_batch_size", 0)
        if each >= 1 and of_all >= each and of_all % each == 0:
            yield Hit("world_size", of_all // each, "global", once="banner")
