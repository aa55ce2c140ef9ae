"""Progress bars of tqdm and Rich: those of Lightning, NeMo, Hugging Face, and any others.

Hugging Face's Trainer and programs that use it (axolotl, TRL, ms-swift) also print a dictionary for
each log entry and one at the end, on one line or with a line for each key, a banner, and a table of
metrics. Times are in seconds. All values except memory are global: a value that several ranks or
nodes print is counted once. The bar counts optimiser steps and shows a running mean of the last
steps. The number of GPUs is the total batch size divided by the batch size of one device.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from hpc_train.logs.formats.base import NUMBER, Coded, Hit, Unreadable, countable, number, seconds
from hpc_train.logs.line import Line
from hpc_train.logs.record import BATCH

# Progress bars of tqdm and Rich -> position, other fields, and the mean time of iterations.

_TQDM = re.compile(
    r"(?:(?:\d{1,3}%)?\|[^|]{0,400}\||\d{1,3}%) *(?P<done>\d{1,12})/(?P<total>\d{1,12}) "
    r"\[(?P<elapsed>[\d:]{1,16})<[^,\]]{1,24}"
    r"(?:, +(?P<rate>[\d.]{1,16}|\?)(?P<unit>it/s|s/it))?"
    r"(?:, (?P<fields>[^\]]{0,4096}))?\]"
)
_ENDLESS = re.compile(
    r"(?<!\d)(?P<done>\d{1,12})(?P<total>)it \[(?P<elapsed>[\d:]{1,16})"
    r"(?:, +(?P<rate>[\d.]{1,16}|\?)(?P<unit>it/s|s/it))?"
    r"(?:, (?P<fields>[^\]]{0,4096}))?\]"
)
_RICH = re.compile(
    r"(?<![━╸╺─])[━╸╺─]{1,400} {0,400}(?P<done>\d{1,12})/(?:(?P<total>\d{1,12})|--) "
    r"(?P<elapsed>\d{1,4}:\d\d:\d\d) • \S{1,12} +(?P<rate>[\d.]{1,16})(?P<unit>it/s|s/it)"
    r"(?P<fields>.{0,4096})"
)

_COARSE = 0.1
_LEAST_S = 20
_RESOLUTION_S = 1
# Tolerance between a printed rate and the elapsed time, in addition to the clock's resolution.
_ROUNDING = 0.01


class Bar(NamedTuple):
    """Position of an iteration, and its time [s]; `start` is the offset where the bar begins.

    `elapsed` is the number of whole seconds since the bar began. `total` is 0 if it is unknown to
    the program. `free` is the offset where the previous bar ended.
    """

    done: int
    total: int
    elapsed: int
    step_time: float | None
    fields: str
    start: int
    end: int
    free: int


def bar_of(text: str) -> Bar | None:
    """Return the first complete bar on a line that has begun to move, else the first."""
    found: list[Bar] = []
    for pattern in (_TQDM, _ENDLESS, _RICH):
        for match in pattern.finditer(text):
            found.append(_bar(match, found[-1].end if found else 0))
        if found:
            break
    return next((bar for bar in found if bar.done), found[0] if found else None)


def _bar(match: re.Match[str], free: int) -> Bar:
    elapsed, done = 0, int(match["done"])
    for part in match["elapsed"].split(":"):
        elapsed = elapsed * 60 + int(part or 0)
    time: float | None = None
    with suppress(ValueError):
        time = float(match["rate"] or "")
        if match["unit"] != "s/it":
            # 0.02it/s has only one significant digit; such bars show the mean since they began.
            mean = elapsed / done if done and elapsed else None
            time = 1 / time if time >= _COARSE else mean
    total, fields = int(match["total"] or 0), match["fields"] or ""
    return Bar(done, total, elapsed, time, fields, *match.span(), free)


class _State(NamedTuple):
    """A state of the bar of a loop; `is_whole`: the state in which the bar began."""

    loop: object
    done: int
    elapsed: int
    is_whole: bool = False
    is_interrupted: bool = False


class BarClock:
    """Remembers, for each rank, the state from which the next interval is measured."""

    def __init__(self) -> None:
        self._from: dict[int | None, _State] = {}

    def interval(self, rank: int | None, loop: object, bar: Bar) -> tuple[float, int] | None:
        """Return the mean time [s] and the number of iterations up to this state of a loop's bar.

        None if the interval is not long enough.
        """
        start = self._from.get(rank)
        if start is None or start.loop != loop or bar.elapsed + _RESOLUTION_S < start.elapsed:
            start = self._from[rank] = _beginning(loop, bar)
        elif start.is_interrupted:
            start = self._from[rank] = _State(loop, bar.done, bar.elapsed)
        steps, took = bar.done - start.done, bar.elapsed - start.elapsed
        if steps <= 0:
            return None
        if took >= _LEAST_S:
            self._from[rank] = _State(loop, bar.done, bar.elapsed)
            return took / steps, steps
        if start.is_whole and bar.done == bar.total and "v_num=" in bar.fields and _agrees(bar):
            # Lightning's rate of a whole epoch is its mean, with more digits than the clock.
            self._from[rank] = start._replace(done=bar.done, is_whole=False)
            return bar.step_time or 0.0, steps
        return None

    def interrupt(self, rank: int | None) -> None:
        """Note that other code ran: the clock includes time outside the loop."""
        if rank in self._from:
            self._from[rank] = self._from[rank]._replace(is_interrupted=True)


def _beginning(loop: object, bar: Bar) -> _State:
    """Return the first state of a loop's bar: 0, unless it was resumed or other code ran before."""
    if not bar.done or _agrees(bar):
        return _State(loop, 0, 0, is_whole=True)
    return _State(loop, bar.done, bar.elapsed)


def _agrees(bar: Bar) -> bool:
    """Whether the printed rate is that of all iterations since 0."""
    if bar.step_time is None:
        return False
    mean = bar.elapsed / bar.done
    return abs(bar.step_time - mean) <= _RESOLUTION_S / bar.done + _ROUNDING * bar.step_time


# Lightning's progress bars, of tqdm and of Rich: `Epoch 0:  23%|..| 23/100 [.., 2.16it/s, ..]`.

_EPOCH = re.compile(r"[Ee]poch:? ?(\d{1,9})(?:/(-?\d{1,9}))?(:)?[: ]*$")
_METRICS = {
    "loss": re.compile(
        r"(?:^|[ ,])(?:train(?:ing)?[_/])?(?:step_)?loss(?:_step)?(?:=|: )([-+.\w]{1,32})"
    ),
    "grad_norm": re.compile(r"(?:^|[ ,])grad_norm(?:=|: )([-+.\w]{1,32})"),
    "learning_rate": re.compile(r"(?:^|[ ,])(?:lr|learning_rate)(?:=|: )([-+.\w]{1,32})"),
}


class LightningBar(Coded):
    """Parser of the bars; remembers the state of the last bar."""

    def __init__(self) -> None:
        self._clock = BarClock()
        self._seen: dict[str, str] = {}

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the times of iterations, and each value where it changes.

        A bar is drawn again after its values were set: the first drawing shows the previous values.
        """
        text = line.text
        bar = bar_of(text)
        epoch = None if bar is None else _EPOCH.search(text, max(0, bar.start - 40), bar.start)
        if bar is None or epoch is None:
            if bar is not None:
                self._clock.interrupt(line.rank)
            return
        # The completed epochs: Rich's `Epoch 0/9` has no colon and counts from 0.
        over = max(0, int(epoch[1]) - (epoch[2] is not None and epoch[3] is not None))
        step = over * bar.total + bar.done if bar.total or not over else None
        found = self._clock.interval(line.rank, over, bar)
        if found is not None:
            yield Hit("step_time", found[0], "per_rank", step, steps=found[1])
        for metric, pattern in _METRICS.items() if bar.done else ():
            shown = pattern.search(bar.fields)
            if shown is None or self._seen.get(metric) == shown[1]:
                continue
            self._seen[metric] = shown[1]
            value = number(shown[1])
            if value is not None:
                yield Hit(metric, value, "per_rank", step)


# Progress bars of tqdm of an unknown loop: `Map:  50%|#####| 5/10 [00:02<00:02, 2.00it/s]`.

_LONGEST = 40


class TqdmBar(Coded):
    """Parser of the bars that no other parser takes; remembers the last one."""

    def __init__(self) -> None:
        self._last: tuple[int | None, str, int] | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the time of an iteration if the bar has advanced."""
        text = line.text
        bar = bar_of(text)
        if bar is None or not bar.done or bar.step_time is None:
            return
        name = " ".join(text[bar.free : bar.start].split()).rstrip(" :-")[-_LONGEST:]
        state = (line.rank, name, bar.done)
        if state != self._last:
            yield Hit("iteration_time", bar.step_time, "unknown", bar.done, variant=name)
        self._last = state


# NeMo: the bar of 1.x (`.., train_step_timing in s=3.13]`), the lines of 2.x (`.. in s: 3.13 |`).

_LINE = re.compile(
    r"Training epoch (?P<epoch>\d{1,9}), iteration (?P<done>\d{1,12})/(?P<total>\d{1,12}) \| "
)
_FIELD = re.compile(r"([A-Za-z_][\w ]{1,40}?)(?:=|: )([-+.\w]{1,32})")
_NEMO_EPOCH = re.compile(r"Epoch (\d{1,9}):")
_TIMINGS = frozenset({"train_step_timing in s", "train_step_timing"})


class Nemo(Coded):
    """Parser of both forms; remembers the last bar, which is drawn more than once."""

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
            yield from self.stated(fields, _step(fields, place))
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
            match = _NEMO_EPOCH.search(text)
            epoch = int(match[1]) if match else 0
            # Without a total, the bar of a later epoch lacks the run's step; `global_step` has it.
            step = _step(fields, epoch * bar.total + bar.done)
            took = self._clock.interval(line.rank, epoch, bar)
            if took is not None and not _TIMINGS & fields.keys():
                yield Hit("step_time", took[0], "global", step, steps=took[1])
            yield from self.stated(fields, step)
        self._last = last


def _fields(text: str) -> dict[str, str]:
    return {name.strip(): value for name, value in _FIELD.findall(text)}


def _step(fields: dict[str, str], place: int) -> int:
    shown = fields.get("global_step", "")
    value = None if "e" in shown else number(shown)
    return place if value is None or not 0 <= value < 1e15 else int(value)


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
