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

from hpc_train.logs.formats.base import Coded, Hit, Unreadable
from hpc_train.logs.formats.number import NUMBER, countable, number, quotient, seconds
from hpc_train.logs.formats.progress_bars import Bar, bar_of
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

_START = re.compile(r"""\{['"](?:loss|train_runtime|eval_loss)['"]: """)
# The first line of a dictionary that is printed over several, and its next lines.
_OPENED = re.compile(_START.pattern + r"[^{}]{0,4096},$")
_CONTINUED = re.compile(r"""\s{0,8}['"][^{}]{0,1024}(?:,|\})$""")
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
_BANNER_METRICS: dict[str, tuple[str, Scope]] = {
    "Num examples": ("examples", "global"),
    "Total train batch size": ("global_batch_size", "global"),
    "Total optimization steps": ("steps", "global"),
    "Number of trainable parameters": ("parameters", "global"),
    "Instantaneous batch size per device": ("batch_size", "per_rank"),
}
_ACCUMULATED = "Gradient Accumulation steps"


class HfTrainer(Coded):
    """Parser of the Trainer's output; remembers the state of the run."""

    def __init__(self) -> None:
        self._opened = ""
        self._bar = HfBar()
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
            yield from self._row(text)
        elif "***** Running " in text:
            self._is_training = "training" in text
            self._bar.train() if self._is_training else self._bar.evaluate()

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
        is_loss = "loss" in log
        found = list(hits_of_log(log))
        if not found:
            return
        if is_loss and (total := total_of(log)):
            self._bar.plan(total)
        elif is_loss:
            self._bar.logged()
        runtime = found[0].value if found[0].metric == "time_to_train" else None
        if runtime is not None:
            self._bar.finished(runtime, number(log.get("train_steps_per_second", "")) or 0)
        at = self._bar.step_at(log.get("epoch", "")) if is_loss else self._bar.step
        step, planned = step_of(log) or at, self._bar.total
        steps = max(1, step - self._logged) if is_loss and step is not None else 1
        if is_loss and step is not None:
            self._logged = step
        yield from hits_of_log(log, step, steps)
        speed = number(log.get("train_speed(iter/s)", "")) or 0
        time = quotient(1, speed) if speed > 0 else number(log.get("train_speed(s/it)", ""))
        if time:
            # ms-swift divides the time since the start by the steps.
            variant, once = "running_average", f"speed {step}"
            yield Hit("step_time", time, "global", step, variant=variant, once=once)
        if runtime is not None and planned:
            # The mean step time of the whole run; the printed rates have too few digits for it.
            mean = runtime / planned
            yield Hit("step_time", mean, "global", steps=planned, variant="mean", once="summary")

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
            self._bar.plan(countable(value) or 0)
        yield Hit(metric, value, scope, once="banner")

    def _world_size(self, accumulated: float) -> Iterator[Hit]:
        """Yield the number of GPUs: the total batch size divided by that of one device."""
        each = self._batch.get("batch_size", 0) * accumulated
        of_all = self._batch.get("global_batch_size", 0)
        if each >= 1 and of_all >= each and of_all % each == 0:
            yield Hit("world_size", of_all // each, "global", once="banner")


# Selection of the progress bar of the Trainer's training.
#
# Evaluations, datasets and downloads draw bars of the same form. The bar of the training is
# identified by the number of steps that the Trainer prints, in its banner
# (`Total optimization steps = 32`) or in a dictionary (`'global_step/max_steps': '12/60'`); by a
# dictionary with the loss, which is printed while the bar is active; or by the rate of the whole
# training. Bars before that are ignored, and also bars with another total or a clock that
# decreases.
#
# A dictionary belongs to the current step of the bar, unless the output was buffered: then it is
# printed late, and its epoch does not increase with the bar.

# tqdm draws at most ten times per second: with faster steps, the bar does not show the last one.
_SLOW_S = 0.2
_RATE_ROUNDING = 0.0005
# An epoch that increased by fewer units of its last digit is not used.
_LEAST_DIGITS = 10


class HfBar:
    """Remembers the last bar, and the progress of the training."""

    def __init__(self) -> None:
        self.total = 0
        # The last step in the training's bar; None if steps are too fast.
        self.step: int | None = None
        self._is_stated = False
        self._last: Bar | None = None
        self._done = 0
        self._elapsed = 0
        self._is_aside = False
        self._logged: tuple[float, int] | None = None
        self._decimals = 0

    def train(self) -> None:
        """Note the head of a training's banner."""
        self._begin(0, None)

    def plan(self, total: int) -> None:
        """Note the number of steps that the banner or a dictionary states."""
        if total != self.total:
            last = self._last
            self._begin(total, last if last is not None and last.total == total else None)
        self._is_stated = True

    def evaluate(self) -> None:
        """Note the head of an evaluation's banner: the next bar is its own."""
        self._is_aside = True

    def evaluated(self) -> None:
        """Note a dictionary of an evaluation: the last bar was its own."""
        self._last, self._is_aside = None, False

    def logged(self) -> None:
        """Note a dictionary with a loss: the bar under way is that of the training."""
        last = self._last
        is_new = last is not None and last.total != self.total
        if last is None or (is_new and (self._is_stated or not 0 < last.done < last.total)):
            return
        self._begin(last.total, last)

    def step_at(self, epoch: str) -> int | None:
        """Return the step of a dictionary with this epoch; None if it was printed late."""
        place, before = number(epoch), self._logged
        if self.step is None or place is None:
            return self.step
        self._logged = (place, self.step)
        self._decimals = max(self._decimals, len(epoch.partition(".")[2]))
        if before is None or place <= before[0]:
            return self.step
        rise, moved = place - before[0], self.step - before[1]
        digit = 10.0**-self._decimals
        if moved and rise < _LEAST_DIGITS * digit:
            return self.step
        expected = place * moved / rise
        is_late = not moved or abs(expected - self.step) > max(1.0, expected * digit / rise)
        return None if is_late else self.step

    def finished(self, runtime: float, rate: float) -> None:
        """Note the end: how long [s] the training took, and its steps per second."""
        last = self._last
        if not self.total and last is not None and last.done == last.total:
            if abs(runtime * rate - last.total) <= 1 + runtime * _RATE_ROUNDING:
                self.total = last.total

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
        self._elapsed, self.step = max(self._elapsed, bar.elapsed), _step(bar)
        return max(1, since)

    def _begin(self, total: int, last: Bar | None) -> None:
        is_other = total != self.total
        self._is_stated = self._is_stated and not is_other
        self.total, self._last, self._is_aside = total, last, False
        self._done, self._elapsed = (last.done, last.elapsed) if last else (0, 0)
        self.step = _step(last) if last else None
        if is_other:
            self._logged = None


def _step(bar: Bar) -> int | None:
    return bar.done if (bar.step_time or 0) > _SLOW_S else None


# Dictionaries that Hugging Face's Trainer logs -> measurements.
#
# The loss is the mean over ranks and over the logged steps. Samples and steps per second are those
# of the whole job over the whole run. `train_tokens_per_second` is per device in the summary, and
# of the whole job together with `num_input_tokens_seen`. Memory is in GiB, of the printing rank.

TrainerLog = Mapping[str, str]

_LOGGED: dict[str, tuple[str, Scope]] = {
    "loss": ("loss", "global"),
    "grad_norm": ("grad_norm", "global"),
    "learning_rate": ("learning_rate", "global"),
    "lr": ("learning_rate", "global"),
    "memory(GiB)": ("memory", "per_rank"),
    "memory/max_active (GiB)": ("memory", "per_rank"),
    "memory/max_mem_active(gib)": ("memory", "per_rank"),
    "tokens_per_second_per_gpu": ("tokens_per_second", "per_gpu"),
    "tokens/train_per_sec_per_gpu": ("tokens_per_second", "per_gpu"),
}
# Keys that distinguish a log of the Trainer from other dictionaries with a loss.
_COMPANIONS = frozenset({"epoch", "learning_rate", "grad_norm"})
_STEP = (
    *("global_step/max_steps", "steps[global_step/max_steps]", "iteration"),
    *("current_steps", "global_step", "step"),
)
_SUMMARY: dict[str, tuple[str, Scope]] = {
    "train_samples_per_second": ("samples_per_second", "global"),
    "train_tokens_per_second": ("tokens_per_second", "per_gpu"),
}
_RATES = frozenset({"train_samples_per_second", "train_steps_per_second"})


def hits_of_log(log: TrainerLog, step: int | None = None, steps: int = 1) -> Iterator[Hit]:
    """Yield what one dictionary states; `step` is the current step, used if it names none.

    Copies by other ranks are the same measurement.
    """
    if "train_runtime" in log and _RATES & log.keys():
        yield from summary_hits(log)
    elif "loss" in log and _COMPANIONS & log.keys():
        yield from _logged(log, step, steps)
    elif "eval_accuracy" in log:
        yield from accuracy_hits(log, step_of(log) or step)


def summary_hits(log: TrainerLog) -> Iterator[Hit]:
    """Yield the values of the summary after the training, in a dictionary or a table."""
    runtime = seconds(log["train_runtime"]) if "train_runtime" in log else None
    if runtime is not None:
        yield Hit("time_to_train", runtime, "global", once="summary")
    for key, (metric, scope) in _SUMMARY.items():
        value = number(log[key]) if key in log else None
        if value is not None:
            yield Hit(metric, value, scope, once="summary")


def accuracy_hits(log: TrainerLog, step: int | None = None) -> Iterator[Hit]:
    """Yield the accuracy of an evaluation, a fraction."""
    value = number(log["eval_accuracy"])
    if value is not None:
        yield Hit("accuracy", value, "global", step, once=f"{step} {log.get('epoch')} {value}")


def step_of(log: TrainerLog) -> int | None:
    """Return the optimiser step that a dictionary names."""
    text = next((log[key] for key in _STEP if key in log), "")
    done = text.partition("/")[0]
    return int(done) if done.isdecimal() and len(done) < 16 else None


def total_of(log: TrainerLog) -> int | None:
    """Return the number of optimiser steps of the whole training, where a dictionary names it."""
    text = next((log[key].partition("/")[2] for key in _STEP if "/" in log.get(key, "")), "")
    text = text or log.get("total_steps", "")
    return int(text) if text.isdecimal() and len(text) < 16 else None


def _logged(log: TrainerLog, step: int | None, steps: int) -> Iterator[Hit]:
    named = step_of(log)
    # Ranks print the same reduced loss; the epoch alone is rounded, and shared by many steps.
    copy = " ".join(f"{log.get(key)}" for key in ("loss", *sorted(_COMPANIONS))) + f" {named}"
    step = step if named is None else named
    for key, (metric, scope) in _LOGGED.items():
        value = number(log[key]) if key in log else None
        if value is not None:
            yield Hit(metric, value, scope, step, steps=steps, once=copy)
    if "num_input_tokens_seen" in log:
        rate = number(log.get("train_tokens_per_second", ""))
        if rate is not None:
            yield Hit("tokens_per_second", rate, "global", step, once=copy)


# Files of Hugging Face's Trainer: trainer_state.json, all_results.json, train_results.json.
#
# The entries of `log_history` are the Trainer's log entries, each with its step. The
# result files contain the summary, one value per line. Units and scopes are the same as in the log.

_HISTORY = '"log_history": ['
_ENTRY = re.compile(r"\{[^{}]{0,16384}\}")
_LONGEST = 1 << 15
_RESULT = re.compile(
    r'^ *"((?:train|eval)_(?:runtime|samples_per_second|tokens_per_second|accuracy))": '
    r"([-+.\w]{1,40}),?$"
)


class HfState(Coded):
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
                yield from _result(text)
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
        step = step_of(log)
        steps = max(1, (step or 0) - self._step) if "loss" in log else 1
        if "loss" in log:
            self._step = step or 0
        yield from hits_of_log(log, step, steps)


def _result(text: str) -> Iterator[Hit]:
    result = _RESULT.match(text)
    if result is not None:
        log = {result[1]: result[2]}
        yield from accuracy_hits(log) if "eval_accuracy" in log else summary_hits(log)
