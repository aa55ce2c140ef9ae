"""Hugging Face's Trainer and programs that use it: axolotl, TRL, ms-swift.

The output has a dictionary for each log entry and one at the end, on one line or
with a line for each key, a bar that counts
optimiser steps, a banner, and a table of metrics. Times are in seconds. All values
except memory are global: a value that several ranks or nodes print is counted once. The bar shows a
running mean of the last steps. The number of GPUs is the total batch size divided by the batch size
of one device.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from hpc_train.logs.formats.base import Coded, Hit, Unreadable
from hpc_train.logs.formats.number import NUMBER, countable, number, seconds
from hpc_train.logs.formats.progress_bars import Bar, bar_of
from hpc_train.logs.line import Line
from hpc_train.logs.record import BATCH

_START = re.compile(r"""\{['"](?:loss|train_runtime|eval_loss)['"]: """)
# The first line of a dictionary that is printed over several, and its next lines.
_OPENED = re.compile(_START.pattern + r"[^{}]{0,4096},$")
_CONTINUED = re.compile(r"""^\s{0,8}['"][^{}]{0,1024}(?:,|\})$""")
_EVALUATION = re.compile(r"""\{['"]eval_\w{1,80}['"]: """)
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
_ACCUMULATED = "Gradient Accumulation steps"
# Keys that distinguish a log of the Trainer from other dictionaries with a loss.
_COMPANIONS = frozenset({"epoch", "learning_rate", "grad_norm"})
_STEP = (
    *("global_step/max_steps", "steps[global_step/max_steps]", "iteration"),
    *("current_steps", "global_step", "step"),
)
_RATES = frozenset({"train_samples_per_second", "train_steps_per_second"})


class _HfFormat(Coded):
    """Reads the dictionaries that Hugging Face's Trainer logs.

    The loss is the mean over ranks and over the logged steps. Samples and steps per second are
    those of the whole job over the whole run. `train_tokens_per_second` is per device in the
    summary, and of the whole job together with `num_input_tokens_seen`. Memory is in GiB, of the
    printing rank.
    """

    def _hits(
        self, log: Mapping[str, str], step: int | None = None, steps: int = 1
    ) -> Iterator[Hit]:
        """Yield what one dictionary states; `step` is the current step, used if it names none.

        Copies by other ranks are the same measurement.
        """
        named = _step_of(log)
        step = step if named is None else named
        if "train_runtime" in log and _RATES & log.keys():
            yield from self._summary(log)
        elif "loss" in log and _COMPANIONS & log.keys():
            # Ranks print the same reduced loss; the epoch alone is rounded, and shared by many.
            copy = " ".join(f"{log.get(key)}" for key in ("loss", *sorted(_COMPANIONS)))
            found: dict[str, object] = {
                key: log[key] for key, one in self.fields.items() if key in log and not one.once
            }
            if "num_input_tokens_seen" in log:
                found["tokens of the job"] = log.get("train_tokens_per_second")
            for hit in self.stated(found, step, steps):
                yield replace(hit, once=f"{copy} {named}")
        elif "eval_accuracy" in log:
            yield from self._accuracy(log, step)

    def _summary(self, log: Mapping[str, str]) -> Iterator[Hit]:
        """Yield the values after the training or an evaluation, in a dictionary or a table."""
        if "eval_accuracy" in log:
            yield from self._accuracy(log)
        runtime = seconds(log["train_runtime"]) if "train_runtime" in log else None
        if runtime is not None:
            yield Hit("time_to_train", runtime, "global", once="summary")
        keys = ("train_samples_per_second", "train_tokens_per_second")
        yield from self.stated({key: log[key] for key in keys if key in log}, None)

    def _accuracy(self, log: Mapping[str, str], step: int | None = None) -> Iterator[Hit]:
        """Yield the accuracy of an evaluation, a fraction."""
        value = number(log["eval_accuracy"])
        if value is not None:
            yield Hit("accuracy", value, "global", step, once=f"{step} {log.get('epoch')} {value}")


def _step_of(log: Mapping[str, str]) -> int | None:
    """Return the optimiser step that a dictionary names."""
    text = next((log[key] for key in _STEP if key in log), "")
    return _count(text.partition("/")[0])


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 16 else None


class HfTrainer(_HfFormat):
    """Parser of the Trainer's output; remembers the state of the run."""

    def __init__(self) -> None:
        self._opened = ""
        self._bar = TrainingBar()
        self._logged = 0
        self._is_training = True
        self._batch: dict[str, float] = {}

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a line: of a bar, a dictionary, both, or a row of a table."""
        text = self._joined(line.text)
        bar = bar_of(text)
        if bar is not None:
            yield from self._step_time(text, bar)
        if _EVALUATION.search(text):
            self._bar.evaluated()
        logs = list(_LOG.finditer(text))
        for log in logs:
            yield from self._log(dict(_PAIR.findall(log[0])))
        for start in _START.finditer(text):
            if not any(log.start() == start.start() for log in logs):
                yield Unreadable()
        if " = " in text:
            yield from self._line(text)
        elif "***** Running " in text:
            self._is_training = "training" in text
            self._bar.plan(0) if self._is_training else self._bar.evaluate()

    def _joined(self, text: str) -> str:
        """Return the text with the lines of its dictionary before it; empty if that goes on."""
        if self._opened:
            gap = " " if _CONTINUED.match(text) else "\n"
            text = f"{self._opened}{gap}{text.strip() if gap == ' ' else text}"
        self._opened = text if _OPENED.search(text) else ""
        self.wants_next = bool(self._opened)
        return "" if self._opened else text

    def _step_time(self, text: str, bar: Bar) -> Iterator[Hit]:
        if bar.fields or not bar.total or not _BEFORE_BAR.fullmatch(text[bar.free : bar.start]):
            return
        steps = self._bar.advance(bar)
        if steps and bar.step_time is not None:
            once = f"bar {bar.done}"
            yield Hit("step_time", bar.step_time, "global", bar.done, steps=steps, once=once)

    def _log(self, log: dict[str, str]) -> Iterator[Hit]:
        step, steps = _step_of(log), 1
        if "loss" in log and step is not None:
            steps, self._logged = max(1, step - self._logged), step
        found = list(self._hits(log, step, steps))
        yield from found
        if found and "loss" in log:
            places = (log[key].partition("/")[2] for key in _STEP if "/" in log.get(key, ""))
            total = _count(next(places, "") or log.get("total_steps", ""))
            self._bar.plan(total) if total else self._bar.logged()
        if found and found[0].metric == "time_to_train" and (planned := self._bar.total):
            # The mean step time of the whole run; the printed rates have too few digits for it.
            mean = found[0].value / planned
            yield Hit("step_time", mean, "global", steps=planned, variant="mean", once="summary")

    def _line(self, text: str) -> Iterator[Hit]:
        if row := _TABLE.search(text):
            yield from self._summary({row[1]: row[2].strip()})
            return
        banner = _BANNER.search(text)
        value = number(banner[2]) if banner and self._is_training else None
        if banner is None or value is None:
            return
        name = banner[1].partition(" (")[0]
        if name != _ACCUMULATED:
            hit = self.fields[name].hit(value, None)
            self._batch[hit.metric] = value
            if hit.metric == "steps":
                self._bar.plan(countable(value) or 0)
            yield hit
            return
        # The number of GPUs: the total batch size divided by that of one device.
        each, of_all = self._batch.get("batch_size", 0) * value, self._batch.get(BATCH, 0)
        if each >= 1 and of_all >= each and of_all % each == 0:
            yield Hit("world_size", of_all // each, "global", once="banner")


# Evaluations, datasets and downloads draw bars of the same form as the training. Its bar is the one
# with the number of steps that a banner states (`Total optimization steps = 32`) or a dictionary
# (`'global_step/max_steps': '12/60'`) or, without them, that is under way when a dictionary with a
# loss is printed.


class TrainingBar:
    """Remembers the last bar, and the progress of the training, of `total` steps."""

    def __init__(self) -> None:
        self.total = 0
        self._is_stated = False
        self._last: Bar | None = None
        self._done = self._elapsed = 0
        self._is_aside = False

    def plan(self, total: int) -> None:
        """Note the number of steps that is stated, 0 where a training begins."""
        if not total or total != self.total:
            self._begin(total)
        self._is_stated = total > 0

    def evaluate(self) -> None:
        """Note the head of an evaluation's banner: the next bar is its own."""
        self._is_aside = True

    def evaluated(self) -> None:
        """Note a dictionary of an evaluation: the last bar was its own."""
        self._last, self._is_aside = None, False

    def logged(self) -> None:
        """Note a dictionary with a loss: the bar under way is that of the training."""
        last = self._last
        if last and last.total != self.total and not self._is_stated and last.done < last.total:
            self._begin(last.total)

    def advance(self, bar: Bar) -> int:
        """Return the number of steps that the training's bar advanced; 0 for any other bar."""
        # Ranks draw the same bar, a little apart.
        least = self._elapsed if self._is_aside else self._elapsed // 2
        is_other = bar.total == self.total and bar.elapsed < least
        self._is_aside = is_other or (self._is_aside and bar.total != self.total)
        self._last = bar
        if is_other or bar.total != self.total or not bar.done:
            return 0
        since, self._done = bar.done - self._done, max(self._done, bar.done)
        self._elapsed = max(self._elapsed, bar.elapsed)
        return max(1, since)

    def _begin(self, total: int) -> None:
        last = self._last if self._last and self._last.total == total else None
        self.total, self._last, self._is_aside = total, last, False
        self._done, self._elapsed = (last.done, last.elapsed) if last else (0, 0)


# Files of Hugging Face's Trainer: trainer_state.json, all_results.json, train_results.json.

_HISTORY = '"log_history": ['
_ENTRY = re.compile(r"\{[^{}]{0,16384}\}")
_LONGEST = 1 << 15
_RESULT = re.compile(
    r'^ *"((?:train|eval)_(?:runtime|samples_per_second|tokens_per_second|accuracy))": '
    r"([-+.\w]{1,40}),?$"
)


class HfState(_HfFormat):
    """Parser of the files; remembers the part of an entry that it has seen."""

    def __init__(self) -> None:
        self.wants_next = False
        self._open = ""
        self._step = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of the entries that end on this line, or the result on this line."""
        text = line.text
        if not self.wants_next:
            start = text.find(_HISTORY)
            if start < 0:
                if result := _RESULT.match(text):
                    yield from self._summary({result[1]: result[2]})
                return
            self.wants_next, self._open, self._step = True, "", 0
            text = text[start + len(_HISTORY) :]
        self._open += text + " "
        end = 0
        for entry in _ENTRY.finditer(self._open):
            end = entry.end()
            yield from self._entry(entry[0])
        self._open = self._open[end:].lstrip(" ,")
        if self._open.startswith("]"):
            self.wants_next = False
        elif len(self._open) > _LONGEST:
            self.wants_next = False
            yield Unreadable()

    def _entry(self, text: str) -> Iterator[Hit | Unreadable]:
        try:
            entry = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        except ValueError:
            yield Unreadable()
            return
        log = {key: value for key, value in entry.items() if isinstance(value, str)}
        step, steps = _step_of(log), 1
        if "loss" in log:
            steps, self._step = max(1, (step or 0) - self._step), step or 0
        yield from self._hits(log, step, steps)
