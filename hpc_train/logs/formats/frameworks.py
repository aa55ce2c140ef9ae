"""Logs of other frameworks than PyTorch: Paddle, Keras and TensorFlow, MXNet."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hpc_train.logs.formats.base import (
    OF_LINE,
    Coded,
    Field,
    Hit,
    Intervals,
    RunningStep,
    StepPosition,
    Unreadable,
)
from hpc_train.logs.formats.number import NUMBER, countable, number, scaled
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

# Paddle's suites: PaddleDetection, -OCR, -Clas, -Seg, -Video, and PaddleNLP's scripts.

_PLACE = re.compile(
    r"\[Train\]\[Epoch {1,6}(?P<clas>\d{1,9})/\d{1,9}\]\[Iter:? {1,8}(?P<i1>\d{1,9})/\d{1,9}\]"
    r"|\bEpoch: \[(?P<det>\d{1,9})\] \[ {0,8}(?P<i2>\d{1,9})/(?P<total>\d{1,9})\]"
    r"(?= learning_rate: )"
    r"|\bepoch:\[ {0,6}(?P<video>\d{1,9})/\d{1,9} {0,6}\] train step:(?P<i3>\d{1,12}) "
    r"|\bepoch: \[(?P<ocr>\d{1,9})/\d{1,9}\], iter: (?P<i4>\d{1,12}),"
    r"|\[Epoch (?P<other>\d{1,9}), iter: (?P<i5>\d{1,9})\]"
    r"|\bepoch: \[\d{1,9}/\d{1,9}\], global_step: (?P<step1>\d{1,12}),"
    r"|\bglobal step (?P<step2>\d{1,12}), epoch: \d{1,9},"
    r"|\[TRAIN\] epoch: \d{1,9}, iter: (?P<step3>\d{1,12})/\d{1,12},"
)
_FIELD = re.compile(
    r"(?:[,\s\]]|^)(?P<key>(?:learning )?[a-z_]{2,16})(?:\(\w{1,40}\))?:"
    rf" {{1,4}}(?P<value>{NUMBER})(?P<unit> ?[a-z]{{1,12}}(?:/s(?:ec)?)?)?(?=(?P<end>,|\s|\.?$))"
)
_DECIMALS = re.compile(r"\.\d{4}")
_EXPONENT = re.compile(r"e[-+]\d\d$")
_SAMPLES = ("samples", "images", "instance", "instances", "sequences", "ins")


class Paddle(Coded):
    """Parser of the training lines; remembers the position of the training."""

    def __init__(self) -> None:
        self._running = RunningStep()
        self._intervals = Intervals()

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a training step."""
        place = _PLACE.search(line.text)
        if place is None:
            return
        shown = {m["key"]: m for m in _FIELD.finditer(line.text, place.end() - 1)}
        if not {"batch_cost", "avg_batch_cost"} & shown.keys():
            yield Unreadable()
            return
        step = self._step(place)
        steps = self._intervals.since(line, step)
        steps = 1 if place["video"] or place["clas"] else steps
        for key, match in shown.items():
            field, value = self._field(key, match, "ips_total" in shown), number(match["value"])
            # A rate that is too low for six decimals is printed as 0.
            is_lost = value == 0 and field is not None and field.metric == "learning_rate"
            if field is None or value is None or is_lost or not _whole(match):
                continue
            variant = "running_average" if place["clas"] and field.mean else ""
            yield field._replace(variant=variant).hit(value, step, steps)

    def _step(self, place: re.Match[str]) -> int:
        """Return the number of the step within the run."""
        found = {name: int(text) for name, text in place.groupdict().items() if text}
        for name in ("step1", "step2", "step3"):
            if name in found:
                return found[name]
        if "det" in found:
            # Iterations and epochs count from 0.
            return found["det"] * found["total"] + found["i2"] + 1
        epoch = next(found[name] for name in ("clas", "video", "ocr", "other") if name in found)
        done = next(found[name] for name in ("i1", "i3", "i4", "i5") if name in found)
        return self._running.at(epoch, done).step

    def _field(self, key: str, match: re.Match[str], total: bool) -> Field | None:
        """Return the field of a key; the field of a rate depends on its unit."""
        unit = (match["unit"] or "").strip().partition("/")[0]
        if key.endswith("ips") and (unit or match["end"] not in ("", ",")) and unit not in _SAMPLES:
            key = "ips tokens" if unit == "tokens" and total else ""
        return None if key == "ips_total" and unit != "tokens" else self.fields.get(key)


def _whole(match: re.Match[str]) -> bool:
    """Return whether a number is complete: text follows it, or it has all its decimals."""
    if match["key"] == "learning rate":
        return bool(_EXPONENT.search(match["value"]))
    return bool(match["end"] or match["unit"] or _DECIMALS.search(match["value"]))


# PaddleNLP's Trainer: `loss: .., learning_rate: .., global_step: 10, interval_runtime: .., ..`.

_HEAD = re.compile(r"(?:^|\s)loss: (?=[-\d])")
_NLP_FIELD = re.compile(rf"(?P<key>[a-z_]{{1,60}}): (?P<value>{NUMBER}), ")


class PaddleNlp(Coded):
    """Parser of the Trainer's lines."""

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields that end with a comma."""
        head = _HEAD.search(line.text)
        if head is None:
            return
        texts = {m["key"]: m["value"] for m in _NLP_FIELD.finditer(line.text, head.start())}
        found = {key: value for key, text in texts.items() if (value := number(text)) is not None}
        took, rate = found.get("interval_runtime"), found.get("interval_steps_per_second")
        step, done = countable(found.get("global_step")), countable((took or 0) * (rate or 0))
        if step is None or done is None or not took or not rate:
            yield Unreadable()
            return
        steps = max(1, done)
        yield from self.stated(texts, step, steps)
        yield Hit("step_time", scaled(took, 1 / steps), "global", step, steps=steps)


# Keras fit: `1875/1875 [====] - 4s 2ms/step - loss: 0.29 - accuracy: 0.91 - val_loss: 0.2`.

_KERAS_HEAD = re.compile(
    r"\s{0,12}(?P<done>\d{1,12})/(?P<total>\d{1,12}|Unknown)"
    r"(?: (?P<bar>\[[=>.]{1,60}\]|[━╸ ]{1,60}))?"
)
_KERAS_TIME = re.compile(
    r"(?P<clock>\d{1,7})s(?: (?P<each>\d{1,7})(?P<unit>us|ms|s)/(?P<of>step|sample|epoch))?"
)
_EACH = re.compile(r"(?P<each>\d{1,7})(?P<unit>us|ms|s)/(?P<of>step|sample)")
# It prints four decimals: a number with fewer is truncated.
_VALUE = re.compile(r"(?P<name>[A-Za-z]\w{0,80}): (?P<value>-?\d{1,15}\.\d{4}(?:e[+-]\d\d)?)")
_SCALE = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LONGEST = 4000
_EPOCH = re.compile(r"^\s{0,4}Epoch (?P<epoch>\d{1,7})/(?P<epochs>\d{1,7})\s*$")
_TRAIN_ON = re.compile(r"^\s{0,4}Train on (?P<samples>\d{1,12}) samples\b")
_ACCURACY = re.compile(r"(?:val_)?(?:(?:sparse_)?(?:categorical|binary)_)?acc(?:uracy)?")
_LOSS = re.compile(r"(?:val_)?loss")


class Keras(Coded):
    """Parser of the lines of fit; keeps the current epoch."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._samples = 0
        self._redrawn = False
        self._over = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values at the end of an epoch; the bar of an evaluation follows it."""
        text = line.text
        if head := _EPOCH.match(text):
            self._epoch, self._redrawn, self._over = int(head["epoch"]), False, False
        elif train := _TRAIN_ON.match(text):
            self._samples = int(train["samples"])
        elif self._epoch is not None and (found := line_of(text)) and self._ends(found):
            yield from self._times(self._epoch, found)
            yield from _values(self._epoch, found)
            self._epoch = None

    def _ends(self, found: KerasLine) -> bool:
        """Return whether this is the last drawing of the epoch."""
        if not found.ended or not found.last:
            self._redrawn, self._over = True, self._over or not found.last
            return False
        if not (found.doubtful and self._redrawn) or self._over or _validated(found):
            return True
        # In an epoch below one second, the final line looks like that of the last step before it.
        self._over = found.total * found.each < 1
        return False

    def _times(self, epoch: int, found: KerasLine) -> Iterator[Hit]:
        if found.clock:
            yield Hit("epoch_time", float(found.clock), "per_rank", epoch)
        if not found.each:
            return
        variant = "rounded" if found.digits == 1 else ""
        variant = "with_validation" if _validated(found) else variant
        if found.of == "sample" or found.total == self._samples:
            rate = scaled(1 / found.each, 1.0)
            yield Hit("samples_per_second", rate, "per_rank", epoch, variant=variant)
        else:
            steps = max(1, found.total)
            step = epoch * steps if found.total else None
            yield Hit("step_time", found.each, "per_rank", step, steps=steps, variant=variant)


def _validated(found: KerasLine) -> bool:
    return any(name.startswith("val_") for name in found.values)


def _values(epoch: int, found: KerasLine) -> Iterator[Hit]:
    for name, value in found.values.items():
        of_validation = name.startswith("val_")
        if _LOSS.fullmatch(name):
            variant = "validation" if of_validation else ""
            yield Hit("loss", value, "per_rank", epoch, variant=variant)
        elif _ACCURACY.fullmatch(name):
            variant = "" if of_validation else "training"
            yield Hit("accuracy", value, "per_rank", epoch, variant=variant)


class KerasLine(NamedTuple):
    """The values of a line; `each` [s] is the time of a step or of a sample, 0 if not printed.

    `ended`: it shows no remaining time. `last`: it is not drawn again, because the next state would
    overwrite it. `doubtful`: Keras 3 draws the last step like the end of the epoch.
    """

    total: int
    ended: bool
    last: bool
    doubtful: bool
    clock: int
    each: float
    digits: int
    of: str
    values: dict[str, float]


def line_of(text: str) -> KerasLine | None:
    """Return the values of a line; None if it is not a line of Keras."""
    text, last = text[:_LONGEST].rstrip("\b "), not text.endswith("\b")
    head = _KERAS_HEAD.match(text)
    if head is None and not text.lstrip().startswith("- "):
        return None
    parts = [part.strip() for part in text[head.end() if head else 0 :].split(" - ")]
    # The remainder of a longer previous state follows two or more spaces.
    parts = [part.removeprefix("- ").partition("  ")[0] for part in parts]
    times = [
        match for part in parts if (match := _KERAS_TIME.fullmatch(part) or _EACH.fullmatch(part))
    ]
    clock = next((match for match in times if "clock" in match.groupdict()), None)
    if clock is None and not any(part.startswith("ETA: ") for part in parts):
        return None
    each = next((match for match in times if match["each"] and match["of"] != "epoch"), None)
    values = {
        match["name"]: value
        for part in parts
        if (match := _VALUE.fullmatch(part)) and (value := number(match["value"])) is not None
    }
    bar = (head["bar"] or "") if head else ""
    return KerasLine(
        total=int(head["total"]) if head and head["total"].isdecimal() else 0,
        ended=clock is not None and (head is None or head["done"] == head["total"]),
        last=last,
        doubtful="━" in bar and clock is not None and clock["clock"] == "0",
        clock=int(clock["clock"]) if clock else 0,
        each=scaled(int(each["each"]), _SCALE[each["unit"]]) if each else 0.0,
        digits=len(each["each"]) if each else 0,
        of=each["of"] if each else "",
        values=values,
    )


# TimeHistory of TensorFlow's official models, and its old form `BenchmarkMetric: {..}`.

_INTERVAL = re.compile(
    rf"TimeHistory: (?P<seconds>{NUMBER}) seconds, (?P<rate>{NUMBER}) examples/second "
    r"between steps (?P<first>\d{1,12}) and (?P<last>\d{1,12})(?!\d)"
)
_OLD = re.compile(
    r"BenchmarkMetric: \{[^{}]{0,200}?'(?:global step|num_batches)': ?(?P<last>\d{1,12}), "
    rf"'time_taken': ?{NUMBER}, ?'(?:examples|images)_per_second': ?(?P<rate>{NUMBER})"
)
_FINAL = re.compile(r"Final \w{1,20} parameters: \{")
_GPUS = re.compile(r"'num_gpus': (\d{1,9})\b")
_WORKERS = re.compile(r"'worker_hosts': (?:None|'([^']{0,20000})')")


class TfTimeHistory(Coded):
    """Parser of the lines of the Keras callback TimeHistory."""

    def __init__(self) -> None:
        self._is_final = False
        self._gpus = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the time of a step and the rate of an interval."""
        text = line.text
        if interval := _INTERVAL.search(text):
            seconds, rate = number(interval["seconds"]), number(interval["rate"])
            last, steps = int(interval["last"]), int(interval["last"]) - int(interval["first"])
            if steps > 0 and seconds is not None:
                yield Hit("step_time", seconds / steps, "global", last, steps=steps)
            if steps > 0 and rate is not None:
                yield Hit("samples_per_second", rate, "global", last, steps=steps)
            return
        old = _OLD.search(text)
        rate = number(old["rate"]) if old else None
        if old and rate is not None:
            yield Hit("samples_per_second", rate, "global", int(old["last"]))
        elif "TimeHistory: " in text and " seconds, " in text:
            yield Unreadable()
        else:
            yield from self._world_size(text)

    def _world_size(self, text: str) -> Iterator[Hit]:
        """Yield the number of GPUs after the last of the final parameters that determine it."""
        if " parameters: {" in text:
            self._is_final, self._gpus = _FINAL.search(text) is not None, 0
        gpus, workers = _GPUS.search(text), _WORKERS.search(text)
        if gpus and self._is_final:
            self._gpus = int(gpus[1])
        if workers and self._gpus:
            size = self._gpus * len((workers[1] or "one").split(","))
            self._gpus = 0
            yield Hit("world_size", float(size), "global", once="world_size")


# MXNet's Speedometer: `Node[0] Epoch[0] Batch [20-40]\tSpeed: 1234.5 samples/sec\taccuracy=0.1`.

_LINE = re.compile(
    rf"(?:Node\[(?P<node>\d{{1,7}})\] +(?:[\d:,. -]{{0,30}}INFO:root:)?)?"
    rf"(?:Epoch|Iter)\[(?P<epoch>\d{{1,9}})\] "
    rf"(?:Batch ?\[(?:(?P<first>\d{{1,9}})-)?(?P<batch>\d{{1,9}})\][\t ]{{1,8}}"
    rf"Speed: (?P<rate>{NUMBER}) samples/sec"
    rf"(?P<rest>.{{0,1000}})"
    rf"|Time cost=(?P<epoch_time>{NUMBER})"
    rf"|Validation-(?:accuracy|acc-top1|top_k_accuracy_1)=(?P<accuracy>{NUMBER}))"
)
_GLUON = re.compile(
    rf"\[Epoch (?P<epoch>\d{{1,9}})\] "
    rf"(?:time cost: (?P<epoch_time>{NUMBER})"
    rf"|training: (?:accuracy|acc-top1)=(?P<training>{NUMBER})"
    rf"|validation: (?:accuracy|acc-top1)=(?P<accuracy>{NUMBER})"
    rf"(?:,? {{1,4}}acc-top5=(?P<best>{NUMBER}))?)"
)
_NAME = re.compile(r"\s{1,8}([\w-]{1,40})=")
_MXNET_LOSS = re.compile(rf"\b(?:Train-)?(?:cross-entropy|loss)=(?P<loss>{NUMBER})")


class MxnetSpeedometer(Coded):
    """Parser of the lines of MXNet's training callbacks."""

    def __init__(self) -> None:
        self._steps: defaultdict[int | None, RunningStep] = defaultdict(RunningStep)
        self._each_for_itself = False
        self._in_percent = False
        self._printed: dict[int | None, tuple[StepPosition | None, str, set[str]]] = {}

    def read(self, line: Line) -> Iterable[Hit]:
        """Return the values that one callback printed."""
        text = line.text
        if "kv_store='dist" in text:
            self._each_for_itself = True
        if classic := _LINE.search(text):
            return self._classic(classic)
        gluon = _GLUON.search(text)
        return self._gluon(gluon) if gluon else ()

    def _classic(self, match: re.Match[str]) -> Iterator[Hit]:
        node = int(match["node"]) if match["node"] else None
        self._each_for_itself |= bool(node)
        scope: Scope = "per_rank" if node is None or self._each_for_itself else "global"
        rank = OF_LINE if node is None else node
        if match["batch"]:
            batch = int(match["batch"])
            place = self._steps[node].at(match["epoch"], batch)
            steps = max(1, batch - int(match["first"])) if match["first"] else place.since
            rate, loss = number(match["rate"]), _MXNET_LOSS.search(match["rest"])
            if rate is not None and self._is_new(node, place, match["rate"], match["rest"]):
                yield Hit("samples_per_second", rate, scope, place.step, rank, steps=steps)
            if loss and (value := number(loss["loss"])) is not None:
                yield Hit("loss", value, "per_rank", place.step, rank, steps=steps)
            return
        for metric in ("epoch_time", "accuracy"):
            value = number(match[metric]) if match[metric] else None
            if value is not None:
                whose: Scope = "per_rank" if metric == "accuracy" else scope
                yield Hit(metric, value, whose, int(match["epoch"]) + 1, rank)

    def _is_new(self, node: int | None, place: StepPosition, rate: str, rest: str) -> bool:
        """Whether a rate differs from that of the previous line, which showed another metric."""
        metric = _NAME.match(rest)
        name = metric[1] if metric else ""
        before, stated, shown = self._printed.get(node, (None, "", set()))
        if stated == rate and before == place and name not in shown:
            shown.add(name)
            return False
        self._printed[node] = place, rate, {name}
        return True

    def _gluon(self, match: re.Match[str]) -> Iterator[Hit]:
        epoch, took = int(match["epoch"]) + 1, number(match["epoch_time"] or "")
        if took is not None:
            yield Hit("epoch_time", took, "per_rank", epoch)
        shown = (number(match[name] or "") for name in ("training", "accuracy", "best"))
        self._in_percent |= any(value is not None and value > 1 for value in shown)
        accuracy = number(match["accuracy"] or "")
        if accuracy is not None:
            scale = 0.01 if self._in_percent else 1.0
            yield Hit("accuracy", scaled(accuracy, scale), "global", epoch)


# "The number of ranks in the arguments that programs print when they start.
#
# | line | world_size |
# |---|---|
# | `Namespace(..., dist_url='env://', world_size=16)`, on one line or one argument per line | 16 |
# | `Namespace(..., distributed_world_size=8, ...)` (fairseq) | 8 |
# | `running on rank 0 with world size 8` | 8 |
# | `\| distributed init (rank 0, world 2): env://` (LAVIS) | 2 |
#
# The scope is global. An argument of 1 or less is often a default; together with
# `multiprocessing_distributed`, the argument is the number of nodes. Both are ignored.

_ARGUMENT = re.compile(r"(?<![\w.])(?:distributed_)?world_size=(\d{1,9})(?=[,)\s]|$)")
_SENTENCE = re.compile(
    r"\b[Rr]unning on rank \d{1,9},? (?:with|of) world[ _]size:? (\d{1,9})\b"
    r"|^\| distributed init \(rank \d{1,9}, world (\d{1,9})\): "
)
_NODES = "multiprocessing_distributed="
_MOST_LINES = 1000


class WorldSize(Coded):
    """Parser of the arguments; remembers an open `Namespace(`."""

    def __init__(self) -> None:
        self._open = 0
        self._found = 0

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the number of ranks, at the end of the arguments."""
        text = line.text
        sentence = _SENTENCE.search(text)
        if sentence is not None:
            size = float(sentence[1] or sentence[2])
            yield Hit("world_size", size, "global", once="world_size")
            return
        start = text.find("Namespace(")
        if start >= 0:
            self._open, self._found, text = _MOST_LINES, 0, text[start:]
        self._open = 0 if _NODES in text else self._open - 1
        self.wants_next = self._open > 0
        if self._open < 0 or _NODES in text:
            return
        found = _ARGUMENT.search(text)
        self._found = int(found[1]) if found else self._found
        # Values may contain brackets: with one argument per line, an argument ends at the line end.
        if text.endswith(")") or (start >= 0 and not text.endswith(",")):
            self._open, self.wants_next = 0, False
            if self._found > 1:
                yield Hit("world_size", float(self._found), "global", once="world_size")
