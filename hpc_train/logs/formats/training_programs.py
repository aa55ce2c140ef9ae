"""Programs whose lines are read with what came before: torchtitan, fairseq, DLLogger, others."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from hpc_train.logs.formats.base import (
    NUMBER,
    OF_LINE,
    VALUE,
    Coded,
    Hit,
    Intervals,
    RunningStep,
    Unreadable,
    countable,
    finite,
    number,
    quotient,
    scan_object,
    whole,
)
from hpc_train.logs.line import Line, clean, peel
from hpc_train.logs.record import Scope

# torchtitan: `step: n  loss: ..  memory: ..  tps: ..  tflops: ..  mfu: ..%`.

_STEP = re.compile(r"(?P<validate>validate )?\bstep: {1,12}(?P<step>\d{1,15})  (?=[a-z_]{1,40}: )")
_VALUE = re.compile(
    rf"\b(?P<key>[a-z_]{{1,40}}): {{1,12}}(?P<value>{NUMBER})(?:GiB|%)?(?P<end>\(|  |\s*$)"
)
# The last field of a complete line: after a number, truncation cannot be detected.
_LAST = re.compile(r"\bmfu: {1,12}(?:\S{1,20}%|N/A)")
_LAST_OF_VALIDATION = re.compile(r"\btps: {1,12}\d{1,3}(?:,\d{3}){0,5}\s*$")
# In a coloured word-diff of two logs: removed text that is followed by its replacement.
_OLD = re.compile(rb"\x1b\[31m[^\x1b\r\n]{1,200}(?:\x1b\[39m)?\x1b\[m(?=\x1b\[32m)")
_SIZES = re.compile(
    r"\blocal batch size \d{1,12}, global batch size (?P<batch>\d{1,12})"
    r"(?:, gradient accumulation steps \d{1,9})?, sequence length (?P<length>\d{1,12}),"
)
_DEGREES = re.compile(r"\bdevice mesh with parallelism: (?P<degrees>[a-z_=\d, ]{1,200})")
_MESH = re.compile(r"\b\d-D device mesh with \[[^]]{0,200}\], \[(?P<degrees>[\d, ]{0,80})\]")
_DEGREE = re.compile(r"(?:\b(?:pp|dp_replicate|dp_shard|cp|tp)=|(?<![=\d]))(\d{1,9})\b")
_RANK = re.compile(r"\[rank-(\d{1,7})/\d{1,7}\]")


class Torchtitan(Coded):
    """Parser of torchtitan's lines."""

    def __init__(self) -> None:
        self._intervals = Intervals()

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the fields of a step, or the sizes of the job."""
        text, raw = line.text, line.raw
        if b"\x1b[m\x1b[32m" in raw:
            text = peel(clean(_OLD.sub(b"", raw))).rest
        if match := _STEP.search(text):
            yield from self._step(line, text, match)
        elif match := _SIZES.search(text):
            for metric, group in (("global_batch_size", "batch"), ("sequence_length", "length")):
                yield Hit(metric, float(match[group]), "global", once=metric)
        elif match := _DEGREES.search(text) or _MESH.search(text):
            size = math.prod(map(int, _DEGREE.findall(match["degrees"])))
            yield Hit("world_size", float(size), "global", once="world_size")

    def _step(self, line: Line, text: str, head: re.Match[str]) -> Iterator[Hit | Unreadable]:
        step, variant = int(head["step"]), "validation" if head["validate"] else ""
        steps = 1 if variant else self._intervals.since(line, step)
        whole = (_LAST_OF_VALIDATION if variant else _LAST).search(text, head.end())
        named = _RANK.search(text)
        # A prefix with a local rank below an agent with another label does not state the rank.
        prefix = line.prefix
        of_line = OF_LINE if prefix.task in (None, prefix.rank) else None
        rank = int(named[1]) if named else of_line
        for match in _VALUE.finditer(text, head.end()):
            field, value = self.fields.get(match["key"]), number(match["value"])
            if field is None or value is None or not (whole or match["end"] in ("  ", "(")):
                continue
            # Pipeline stages that do not compute the loss.
            if match["key"] != "loss" or value != -1:
                once = f"{variant} {step}" if field.scope == "global" else ""
                field = msgspec.structs.replace(field, variant=variant, once=once)
                yield field.hit(value, step, steps, rank)
        if not whole:
            yield Unreadable()


# fairseq and metaseq, all forms of `train_inner`: json, simple, tqdm, hydra's or own line prefix.

_JSON = re.compile(rf'"(\w{{1,40}})": "?{VALUE}(?=["}},])')
_SIMPLE = re.compile(rf"[ ,](\w{{1,40}})={VALUE}(?=[,\]\s]|$)")
_DONE = re.compile(r"done training in (" + NUMBER + ") seconds")


class Fairseq(Coded):
    """Parser of the lines; remembers the last update."""

    def __init__(self) -> None:
        self._last = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an interval, or the time of the whole training."""
        text = line.text
        done = _DONE.search(text)
        took = number(done[1]) if done else None
        if took is not None:
            yield Hit("time_to_train", took, "global", once="done")
            return
        found = dict((_JSON if '"wps": ' in text else _SIMPLE).findall(text))
        if "wps" not in found or "ups" not in found:
            return
        update = countable(number(found.get("num_updates", "")))
        if update is None or update < 0:
            yield Unreadable()
        elif update:
            steps = update - self._last if 0 < self._last < update else 1
            self._last = update
            # The first line of a run has no interval, and prints 0.
            values = {key: text for key, text in found.items() if key != "wps" or number(text) != 0}
            for hit in self.stated({**values, "time": _step_time(found)}, update, steps):
                yield msgspec.structs.replace(hit, once=f"{update}")


def _step_time(found: dict[str, str]) -> float | None:
    rate, tokens, updates = (number(found.get(key, "")) for key in ("wps", "wpb", "ups"))
    if rate and tokens:
        return quotient(tokens, rate)
    return quotient(1, updates) if updates else None


# NVIDIA's DLLogger: `DLL <time> - (<epoch>, <step>) <name> : <value> <unit>`, and `DLLL {json}`.
#
# Rank 0 prints for the whole job: all values are global. A script may choose any names; the names
# that NVIDIA's examples use are read. Rates are in 1/s. Times are in s unless the unit `ms` follows
# the value or is given in the metadata. `top1` is a percentage. Values of the validation are
# ignored, except the accuracy.

_TEXT = re.compile(r"DLL \d{4}-\d\d-\d\d [\d:.]{5,20} - (?P<rest>.*)")
_TUPLE = re.compile(r"\((?P<parts>(?:\d{1,12}, ?){0,4}(?:\d{1,12})?)\)")
_WORDS = re.compile(
    r"(?:(?:Training )?Epoch: ?(?P<epoch>\d{1,9}))?"
    r"(?:\s*(?:Training )?(?:Iteration|Step): ?(?P<step>\d{1,12}))?"
)
_PAIR = re.compile(
    rf"(?P<name>[^\s:]{{1,80}}) : (?P<value>{NUMBER})(?!\S)"
    r"(?: (?P<unit>[^\s:]{1,24})(?!\S)(?! :))?"
)
_NOT_TRAINING = re.compile(
    r"(?:^|[._-])(?:val|valid|validation|eval|evaluation|test|infer|inference)"
)
_FACTORS = {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}


class DlLogger(Coded):
    """Parser of both back ends of DLLogger."""

    def __init__(self) -> None:
        self._steps = RunningStep()
        self._units: dict[str, str] = {}

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the known values of one call of the logger."""
        text = line.text
        start = text.find("DLLL {")
        if start >= 0:
            yield from self._json(text, start + len("DLLL "))
            return
        match = _TEXT.search(text)
        if match is None:
            return
        place, rest = _place(match["rest"])
        step = self._step(place)
        for pair in _PAIR.finditer(rest):
            value = number(pair["value"])
            if value is not None:
                yield from self._hits(pair["name"], value, pair["unit"] or "", step)

    def _json(self, text: str, start: int) -> Iterator[Hit | Unreadable]:
        found = scan_object(text, start)
        if found is None:
            yield Unreadable()
            return
        call, _ = found
        name, metadata, values = call.get("metric"), call.get("metadata"), call.get("data")
        if isinstance(name, str) and isinstance(metadata, dict):
            self._units[name] = str(metadata.get("unit") or "")
        place = call.get("step")
        if not isinstance(values, dict) or place == "PARAMETER":
            return
        step = self._step(place) if isinstance(place, list) else whole(place)
        for key, raw in values.items():
            value = number(raw) if isinstance(raw, str) else finite(raw)
            if value is not None:
                yield from self._hits(key, value, "", step)

    def _step(self, place: list[object]) -> int | None:
        """Return the step of `(epoch, step)`; both count from 0 or 1, depending on the script."""
        if len(place) != 2 or (step := whole(place[1])) is None:
            return None
        return self._steps.at(place[0], step)[0]

    def _hits(self, name: str, value: float, unit: str, step: int | None) -> Iterator[Hit]:
        short = name.rpartition(".")[2].lower()
        if _NOT_TRAINING.search(name.lower()) and not short.startswith(("top1", "accuracy")):
            return
        unit = unit or self._units.get(name, "")
        if short in ("top1", "accuracy") and not name.lower().startswith("train"):
            percent = short == "top1" or unit == "%"
            if 0 <= value <= (100 if percent else 1):
                yield Hit("accuracy", value / 100 if percent else value, "global", step)
            return
        if short in self.fields:
            field = msgspec.structs.replace(self.fields[short], scale=_FACTORS.get(unit, 1.0))
            yield field.hit(value, step)


def _place(text: str) -> tuple[list[object], str]:
    """Split the step of a call from its values."""
    tuple_ = _TUPLE.match(text)
    if tuple_:
        parts: list[object] = [int(part) for part in tuple_["parts"].split(",") if part.strip()]
        return parts, text[tuple_.end() :]
    words = _WORDS.match(text)
    if words and words[0]:
        place = [words["epoch"] or "0", words["step"]] if words["step"] else []
        return [int(part) for part in place], text[words.end() :]
    # Parameters are not measurements.
    return [], "" if text.startswith("PARAMETER") else text


# TimeHistory of TensorFlow's official models.

_INTERVAL = re.compile(
    rf"TimeHistory: (?P<seconds>{NUMBER}) seconds, (?P<rate>{NUMBER}) examples/second "
    r"between steps (?P<first>\d{1,12}) and (?P<last>\d{1,12})(?!\d)"
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
            last, steps = int(interval["last"]), int(interval["last"]) - int(interval["first"])
            seconds, rate = number(interval["seconds"]), number(interval["rate"])
            if steps > 0 and seconds is not None and rate is not None:
                yield Hit("step_time", seconds / steps, "global", last, steps=steps)
                yield Hit("samples_per_second", rate, "global", last, steps=steps)
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
    rf"Epoch\[(?P<epoch>\d{{1,9}})\] "
    rf"(?:Batch ?\[(?:(?P<first>\d{{1,9}})-)?(?P<batch>\d{{1,9}})\][\t ]{{1,8}}"
    rf"Speed: (?P<rate>{NUMBER}) samples/sec"
    rf"|Time cost=(?P<epoch_time>{NUMBER})"
    rf"|Validation-(?:accuracy|acc-top1|top_k_accuracy_1)=(?P<accuracy>{NUMBER}))"
)


class MxnetSpeedometer(Coded):
    """Parser of the lines of MXNet's training callbacks."""

    def __init__(self) -> None:
        self._steps: defaultdict[int | None, RunningStep] = defaultdict(RunningStep)
        self._each_for_itself = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the value that one callback printed."""
        self._each_for_itself |= "kv_store='dist" in line.text
        match = _LINE.search(line.text)
        if match is None:
            return
        node = int(match["node"]) if match["node"] else None
        self._each_for_itself |= bool(node)
        scope: Scope = "per_rank" if node is None or self._each_for_itself else "global"
        rank = OF_LINE if node is None else node
        if match["batch"]:
            metric = "samples_per_second"
            step, steps = self._steps[node].at(match["epoch"], int(match["batch"]))
            steps = max(1, int(match["batch"]) - int(match["first"])) if match["first"] else steps
        else:
            metric = "epoch_time" if match["epoch_time"] else "accuracy"
            step, steps = int(match["epoch"]) + 1, 1
            scope = "per_rank" if metric == "accuracy" else scope
        value = number(match["rate"] or match["epoch_time"] or match["accuracy"])
        if value is not None:
            yield Hit(metric, value, scope, step, rank, steps=steps)
