"""Megatron-LM, Core, Bridge, -DeepSpeed, GPT-NeoX, Primus: `iteration n/ N | key: v |`.

The fields of a line, their order and their spelling (`lm loss`, `lm-loss`, `lm_loss=`) differ by
generation, so fields are read by name (`megatron_metrics`). They are printed by the last rank
(GPT-NeoX, Megatron-DeepSpeed: rank 0) for the whole job: times [ms] and losses are global and the
mean of the log interval; TFLOP/s and tokens/s are per GPU unless the key states another scope. Of
a pair `now/mean` (Primus), the first value is used.

"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpc_train.logs.formats.base import OF_LINE, Field, Hit, Intervals, Unreadable, fields
from hpc_train.logs.formats.number import COUNTABLE, NUMBER, number, scaled
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

# Sizes that Megatron prints beside its iterations: of the job, the model and the memory.
#
# Parameters: one line for each model-parallel rank, printed by rank 0 of its data-parallel group;
# the variant is `tensor 0, pipeline 1`. Memory: once per run; the first releases name no rank. `MB`
# are MiB, the newer `GB` (`mem-max-allocated-gigabytes`) are 1e9 B. Of memory, only the maxima that
# tensors (`allocated`) and the allocator (`reserved`) held are read; current values are ignored.

# With more than one dot, Hyperscan takes a second to compile them.
SETUP = (
    b" global_batch_size .",
    b" log_interval .",
    b" seq_length .",
    b"world_size .",
    b" global_num_gpus .",
    b"using world size: ",
    b"> global batch size",
)
_METRICS = {"seq_length": "sequence_length", "global_num_gpus": "world_size"}
_ARGUMENT = re.compile(
    r"^\s*(global_batch_size|global_num_gpus|log_interval|seq_length|world_size) \.{3,60} "
    r"(\d{1,12})(?:\.{0,60}(?:updated|default))?"
)
_WORLD = re.compile(r"^\s*(?:> ?)?using world size: (\d{1,9})(?:,.*| and .*)?")
_BATCH = re.compile(r"^\s*> ?global batch size ?[:=] ?(\d{1,12})")
MODEL = (b"> number of parameters on (tensor, pipeline)",)
_MODEL_PART = re.compile(
    r"> number of parameters on \(tensor, pipeline\) model parallel rank "
    r"\((\d{1,6}), (\d{1,6})\): (\d{1,15})(?!\S)"
)
_MEMORY_HEAD = re.compile(
    r"(?:\[Rank (\d{1,7})\] \()?after (\d{1,15}) iterations\)? memory \((MB|GB)\) \|([^\[]*)"
)
# No bar ends the last field: it was cut where it has no decimals.
_SIZE = re.compile(r"\d{1,15}\.\d{1,20}")
_SCALES = {"MB": 2.0**-10, "GB": 1e9 / 2**30}
_VARIANTS = {
    "max allocated": "max_allocated",
    "max reserved": "max_reserved",
    "max cached": "max_reserved",
    "mem max allocated gigabytes": "max_allocated",
    "mem max reserved gigabytes": "max_reserved",
}


def memory(text: str) -> Iterator[Hit]:
    """Yield the maxima of each report on the line; ranks write several into one."""
    for rank, step, unit, rest in _MEMORY_HEAD.findall(text):
        for key, value in fields(rest + "|")[0]:
            variant = _VARIANTS.get(key)
            if variant and _SIZE.fullmatch(value):
                size = float(value) * _SCALES[unit]
                who = int(rank) if rank else OF_LINE
                yield Hit("memory", size, "per_rank", int(step), who, variant=variant)


def model(text: str) -> Iterator[Hit]:
    """Yield the parameters of each part of the model that a line names."""
    for tensor, pipeline, count in _MODEL_PART.findall(text):
        part = f"tensor {int(tensor)}, pipeline {int(pipeline)}"
        yield Hit("parameters", float(count), "per_rank", variant=part, once=part)


def setup(text: str) -> list[tuple[str, int]]:
    """Return the metric, or `log_interval`, and the number that the line states."""
    if match := _ARGUMENT.fullmatch(text):
        return [(_METRICS.get(match[1], match[1]), int(match[2]))]
    if match := _WORLD.fullmatch(text):
        return [("world_size", int(match[1]))]
    if match := _BATCH.fullmatch(text):
        return [("global_batch_size", int(match[1]))]
    return []


_ITERATION_HEAD = re.compile(r"iteration[ =]\s*(?P<step>\d{1,15})\s*/\s*\d{1,15}\s*\|")
# GPT-NeoX starts the line with this field.
_RATE = re.compile(rf"samples/sec: {{1,8}}({NUMBER}) \| $")
# GLM and SwissArmyTransformer end the line with this field.
_SPEED = re.compile(rf"\bspeed ({NUMBER}) samples/\(min\*GPU\)")
_STARTS = re.compile(r"elapsed time per iteration \(m?s\): +\d")
_VALIDATION = re.compile(
    r"\bvalidation (?:loss|results) at (?:iteration (?P<step>\d{1,15})\b)?[^|]{0,80}\|(?P<rest>.*)"
)
# The line of the iteration repeats the time with more digits.
_BRIDGE = re.compile(
    rf"\bStep Time : .{{1,20}}s GPU utilization: ({NUMBER}) ?(?:MODEL_)?TFLOP/s/GPU"
)
# Primus names the rank itself: `[rank-7/8]`.
_RANK = re.compile(r"\[rank-(\d{1,7})/\d{1,7}\]")
_LOSSES = frozenset({"lm loss value", "lm loss", "loss"})


class Megatron:
    """Parser of the logs of Megatron and its descendants."""

    title = "Megatron-LM, Core, Bridge, Megatron-DeepSpeed, GPT-NeoX, Primus"
    literals = (
        b"elapsed time per iteration (",
        b"elapsed_time_per_iteration_ms=",
        b"validation loss at ",
        b"validation results at ",
        b" iterations) memory (",
        b" iterations memory (",
        b"s GPU utilization: ",
        b"time (ms) |",
        b"time across ranks (ms):",
        *MODEL,
        *SETUP,
    )
    sample = (
        "  world_size ...................................... 16\n"
        " iteration       20/     100 | consumed samples:         1280 |"
        " elapsed time per iteration (ms): 812.4 | throughput per GPU (TFLOP/s/GPU): 151.3 |"
        " learning rate: 3.000E-04 | global batch size:    64 | lm loss: 7.512345E+00 |"
        " loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 |\n"
    )

    def __init__(self) -> None:
        self._intervals = Intervals()
        self._every = 0
        self._step: int | None = None
        self._table = Table()

    @property
    def wants_next(self) -> bool:
        """Whether a table of timers is open."""
        return self._table.open

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of the iterations, timers, memory or arguments on the line."""
        text = line.text
        if self._table.open and (hits := self._table.row(text, self._step)):
            yield from hits
        elif heads := list(_ITERATION_HEAD.finditer(text)):
            ends = [head.start() for head in heads[1:]]
            for head, end in zip(heads, [*ends, len(text)], strict=True):
                yield from self._iteration(line, head, end)
        elif match := _BRIDGE.search(text):
            yield from self._utilisation(match[1])
        elif _STARTS.search(text):
            yield Unreadable()
        elif match := _VALIDATION.search(text):
            yield from _validation(match)
        else:
            yield from self._others(text)

    def _iteration(self, line: Line, head: re.Match[str], end: int) -> Iterator[Hit | Unreadable]:
        step = self._step = int(head["step"])
        steps = self._intervals.since(line, step, max(1, min(self._every, step)))
        # Lines may be missing.
        steps = min(steps, self._every or steps)
        named = _RANK.search(line.text, 0, head.start())
        rank = int(named[1]) if named else OF_LINE
        found, cut = fields(line.text[head.end() : end])
        if rate := _RATE.search(line.text, max(0, head.start() - 60), head.start()):
            found.insert(0, ("samples sec", rate[1]))
        if speed := _SPEED.search(line.text, head.end(), end):
            found.append(("speed samples min gpu", speed[1]))
        for key, text in found:
            field = FIELDS.get(key)
            if field is None:
                continue
            value = reading(text)
            if value is None:
                yield Unreadable()
            elif value.number is not None:
                yield Hit(
                    field.metric,
                    scaled(value.number, field.scale),
                    field.scope,
                    step,
                    rank,
                    steps=steps if field.mean else 1,
                    variant=field.variant,
                )
        if cut in FIELDS:
            yield Unreadable()

    def _utilisation(self, text: str) -> Iterator[Hit]:
        value = number(text)
        # 0.0 means "unknown": models without a FLOP count.
        if value is not None and 0 < value < MOST:
            yield Hit("tflops", value, "per_gpu", steps=self._every or 1)

    def _others(self, text: str) -> Iterator[Hit]:
        self._table.start(text)
        yield from phases(text, self._step)
        yield from memory(text)
        yield from model(text)
        for name, value in setup(text):
            if name == "log_interval":
                self._every = value
            else:
                yield Hit(name, float(value), "global", once=name)


def _validation(match: re.Match[str]) -> Iterator[Hit]:
    step = int(match["step"]) if match["step"] else None
    for key, text in fields(match["rest"])[0]:
        value = number(text) if key in _LOSSES else None
        if value is not None:
            yield Hit("loss", value, "global", step, variant="validation")


# Times of the parts of a step [ms], as the timers of Megatron and DeepSpeed print them.
#
# | line | scope | variant |
# |---|---|---|
# | `time (ms) \| forward-compute: 306.62 \| ...` | per rank | the name |
# | `(min, max) time across ranks (ms):`, then `name ...: (1.20, 3.40)` | global | name min, max |
# | `max time across ranks (ms):`, then `name ...: 3.40` | global | name max |

_TIMERS_HEAD = re.compile(r"(?:^|\s)time \(ms\) \|")
# Timers have two decimals: with fewer, the line was cut.
_ONE = re.compile(r"^\s*([\w/.-]{1,80}(?: [\w/.-]{1,20}){0,5}): (\d{1,15}\.\d\d)\s*")
_TABLE = re.compile(r"(?:^|\s)(\(min, max\)|max) time across ranks \(ms\):\s*$")
_ROW = re.compile(
    r"^\s+(?P<name>[\w/-]{1,80}) ?\.*: "
    r"(?:\((?P<least>\d{1,15}\.\d\d), (?P<most>\d{1,15}\.\d\d)\)|(?P<one>\d{1,15}\.\d\d))"
)


def phases(text: str, step: int | None) -> Iterator[Hit]:
    """Yield the parts that a `time (ms)` line names."""
    # A search for a literal costs a tenth of that for the pattern.
    head = _TIMERS_HEAD.search(text) if "time (ms) |" in text else None
    for part in text[head.end() :].split("|") if head else ():
        if match := _ONE.fullmatch(part):
            yield from _hit(match[2], match[1], step, "")


class Table:
    """The rows that follow `time across ranks`."""

    def __init__(self) -> None:
        self.open = False

    def start(self, text: str) -> None:
        """Open the table if the line is the head of one."""
        self.open = "time across ranks" in text and _TABLE.search(text) is not None

    def row(self, text: str, step: int | None) -> list[Hit]:
        """Return the values of a row; a line that is not a row closes the table."""
        match = _ROW.fullmatch(text)
        self.open = match is not None
        if match is None:
            return []
        name = match["name"]
        least, most = match["least"], match["most"] or match["one"]
        return [*_hit(least, name, step, " min"), *_hit(most, name, step, " max")]


def _hit(text: str | None, name: str, step: int | None, suffix: str) -> Iterator[Hit]:
    value = None if text is None else number(text)
    if value is not None:
        scope: Scope = "global" if suffix else "per_rank"
        yield Hit("phase_time", scaled(value, 1e-3), scope, step, variant=name + suffix)


_TFLOPS = Field("tflops", "per_gpu", mean=True)
_TOKENS_OF_GPU = Field("tokens_per_second", "per_gpu", mean=True)
_TOKENS = Field("tokens_per_second", "global", mean=True)
_SAMPLES = Field("samples_per_second", "global", mean=True)
_LOSS = Field("loss", "global", mean=True)
_MEMORY = Field("memory", "per_rank")

FIELDS = {
    "elapsed time per iteration ms": Field("step_time", "global", 1e-3, mean=True),
    "elapsed time per iteration s": Field("step_time", "global", mean=True),
    "throughput per gpu tflop s gpu": _TFLOPS,
    "compute per gpu tflop s gpu": _TFLOPS,
    "approx flops per gpu": _TFLOPS,
    "tflops": _TFLOPS,
    "lm tflops": _TFLOPS,
    "ds tflops": _TFLOPS._replace(variant="deepspeed"),
    "tokens per gpu tokens s gpu": _TOKENS_OF_GPU,
    "tokens per gpu per second tgs": _TOKENS_OF_GPU,
    "tokens per gpu per second": _TOKENS_OF_GPU,
    "tokens s gpu inst harmonic mean": _TOKENS_OF_GPU,
    "tokens s gpu": _TOKENS_OF_GPU,
    "tokens sec gpu": _TOKENS_OF_GPU,
    "tokens per second per gpu": _TOKENS_OF_GPU,
    "tokens per second per device": _TOKENS_OF_GPU,
    "throughput token sec gpu": _TOKENS_OF_GPU,
    "tokens per second": _TOKENS,
    "tokens sec": _TOKENS,
    "tokens per sec": _TOKENS,
    "samples per second": _SAMPLES,
    "samples sec": _SAMPLES,
    "samples per sec": _SAMPLES,
    "speed samples min gpu": Field("samples_per_second", "per_gpu", 1 / 60, mean=True),
    "energy per gpu j iter gpu": Field("energy", "per_gpu", mean=True),
    "power per gpu w gpu": Field("power", "per_gpu", mean=True),
    "hip mem usage free total usage ratio": _MEMORY,
    "rocm mem usage free total usage ratio": _MEMORY,
    "memory gib": _MEMORY,
    "learning rate": Field("learning_rate", "global"),
    "global batch size": Field("global_batch_size", "global"),
    "lm loss": _LOSS,
    "loss": _LOSS,
    "grad norm": Field("grad_norm", "global"),
}

_VALUE = re.compile(
    rf"^(?P<number>{NUMBER}|-?(?:nan|inf))"
    r" ?(?:(?P<prefix>[KMGTPEZ])?FLOPS|Gi?B)?"
    r"(?:/[-+.\w%]{1,24}){0,3}(?: \(avg [-+.\w]{1,24}\))?"
)
# Compared with TFLOP/s.
_PREFIXES = {"K": 1e-9, "M": 1e-6, "G": 1e-3, "T": 1.0, "P": 1e3, "E": 1e6, "Z": 1e9}
MOST = 1e100


class FieldValue(NamedTuple):
    """The value of a field; no number if it is not finite."""

    number: float | None


def reading(text: str) -> FieldValue | None:
    """Return the first number of a value; None if the text does not have the form of one."""
    match = _VALUE.fullmatch(text)
    if match is None:
        return None
    value = number(match["number"])
    if value is None or abs(value) > MOST:
        return FieldValue(None)
    return FieldValue(value * _PREFIXES.get(match["prefix"] or "", 1.0))


# DeepSpeed's engines: the throughput timer, the pipeline engine, the optimiser's step.
#
# The running average covers the run without its first steps. Rates without a global_step come from
# old versions, which did not count accumulated gradients: in runs with gradient accumulation, these
# rates are omitted. Printed by rank 0. The configuration's world_size is the number of data
# parallel ranks: it is ignored in runs with Megatron or a pipeline, which have further ranks.

_RATES = {
    "RunningAvgSamplesPerSec": "running_average",
    "CurrSamplesPerSec": "",
    "SamplesPerSec": "",
}
# The end of a line may be cut, which does not matter for a number with many digits.
_TIMER = re.compile(
    r"\b(?P<key>global_step|(?:RunningAvg|Curr)?SamplesPerSec|MaxMemAllocated)="
    rf"(?P<value>{NUMBER}(?=,|GB)|\d{{1,15}}\.\d{{3,30}}$)"
)
_PIPELINE = re.compile(
    r"\bsteps?: {1,12}(?P<step>\d{1,15})(?: / {1,12}\d{1,15})? "  # forks: `step: n / N`
    rf"loss: (?P<loss>{NUMBER}|nan|inf)\s[^|]{{0,200}}?"
    rf"\biter time \(s\): (?P<step_time>{NUMBER})"
    r"(?: samples/sec: (?P<samples_per_second>\d{1,15}\.\d{3}\b))?"
)
_OPTIMISER = re.compile(rf"\bstep=(\d{{1,15}}), skipped=\d{{1,15}}, lr=\[({NUMBER})[],]")
_DEEPSPEED_BATCH = re.compile(
    r"\btrain_batch_size \.{3,60} (\d{1,12})(?:\.{0,60}(?:updated|default))?$"
)
_ACCUMULATED = re.compile(r"\bgradient_accumulation_steps \.{2,60} (\d{1,9})$")
_DEEPSPEED_WORLD = re.compile(
    r"\bdist_world_size=(\d{1,9})$|\bDiscovered MPI settings of .{1,80}? world_size=(\d{1,9}),"
)
_CONFIG_WORLD = re.compile(r"\[config\.py:\d{1,6}:\w{1,20}\] {1,8}world_size \.{3,60} (\d{1,9})$")
# Megatron and its descendants state the number of ranks themselves.
_PARALLEL = re.compile(r"ProcessCoord\(|_parallel_size \.|\busing world size: ")


class DeepSpeed:
    """Parser of DeepSpeed's lines."""

    title = "DeepSpeed"
    literals = (
        b"SamplesPerSec=",
        b" iter time (s): ",
        b", lr=[",
        *(b" train_batch_size ....", b" gradient_accumulation_steps ."),
        *(b"dist_world_size=", b"Discovered MPI settings", b":print]   world_size "),
        *(b"ProcessCoord(", b"_parallel_size .", b"using world size: "),
    )
    sample = (
        "[2024-01-01 10:00:00,000] [INFO] [timer.py:260:stop] epoch=0/micro_step=20/"
        "global_step=10, RunningAvgSamplesPerSec=61.5, CurrSamplesPerSec=62.25, "
        "MemAllocated=4.1GB, MaxMemAllocated=12.75GB"
    )
    wants_next = False

    def __init__(self) -> None:
        self._intervals = Intervals()
        self._is_parallel = False
        self._accumulated = 1

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values that the engine prints."""
        text = line.text
        if "SamplesPerSec=" in text:
            is_wrong = self._accumulated > 1 and "global_step=" not in text
            yield from (
                hit
                for hit in _timer(text)
                if not is_wrong or getattr(hit, "metric", "") != "samples_per_second"
            )
        elif accumulated := _ACCUMULATED.search(text):
            self._accumulated = int(accumulated[1])
        for match in _PIPELINE.finditer(text):
            yield from self._pipeline(line, match)
        for step, rate in _OPTIMISER.findall(text):
            value = number(rate)
            if value is not None:
                yield Hit("learning_rate", value, "global", int(step))
        for size in _DEEPSPEED_BATCH.findall(text):
            yield Hit("global_batch_size", float(size), "global", once="global_batch_size")
        yield from self._world(text)

    def _world(self, text: str) -> Iterator[Hit]:
        self._is_parallel = self._is_parallel or _PARALLEL.search(text) is not None
        match = _DEEPSPEED_WORLD.search(text) or (
            None if self._is_parallel else _CONFIG_WORLD.search(text)
        )
        if match is not None:
            size = next(filter(None, match.groups()))
            yield Hit("world_size", float(size), "global", once="world_size")

    def _pipeline(self, line: Line, match: re.Match[str]) -> Iterator[Hit]:
        step = int(match["step"])
        steps = self._intervals.since(line, step)
        for metric in ("loss", "step_time", "samples_per_second"):
            value = number(match[metric] or "")
            if value is not None:
                yield Hit(metric, value, "global", step, steps=1 if metric == "loss" else steps)


def _timer(text: str) -> Iterator[Hit | Unreadable]:
    step, found = None, False
    for match in _TIMER.finditer(text):
        key, value = match["key"], number(match["value"])
        if value is None:
            continue
        if key == "global_step":
            step = int(value) if value < COUNTABLE else None
        elif key in _RATES:
            found = True
            yield Hit("samples_per_second", value, "global", step, variant=_RATES[key])
        else:
            yield Hit("memory", value, "per_rank", step)
    if not found:
        yield Unreadable()
