"""Megatron-LM, Core, Bridge, -DeepSpeed, GPT-NeoX, Primus; DeepSpeed.

`iteration n/ N | key: v |`: the fields of a line, their order and their spelling (`lm loss`,
`lm-loss`, `lm_loss=`) differ by generation, so fields are read by name. They are printed by the
last rank (GPT-NeoX, Megatron-DeepSpeed: rank 0) for the whole job: times [ms] and losses are global
and the mean of the log interval; TFLOP/s and tokens/s are per GPU unless the key states another
scope. Of a pair `now/mean` (Primus), the first value is used.
"""

import re
from collections.abc import Iterator

from hpc_train.logs.formats.base import (
    NUMBER,
    OF_LINE,
    Coded,
    Hit,
    Intervals,
    Unreadable,
    countable,
    fields,
    number,
    scaled,
)
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

_ITERATION = re.compile(r"iteration[ =]\s*(?P<step>\d{1,15})\s*/\s*\d{1,15}\s*\|")
# GPT-NeoX starts the line with this field.
_RATE = re.compile(rf"samples/sec: {{1,8}}({NUMBER}) \| $")
_STARTS = re.compile(r"elapsed time per iteration \(m?s\): +\d")
_VALIDATION = re.compile(
    r"\bvalidation (?:loss|results) at (?:iteration (?P<step>\d{1,15})\b)?[^|]{0,80}\|(?P<rest>.*)"
)
_LOSSES = frozenset({"lm loss value", "lm loss", "loss"})
# The line of the iteration repeats the time with more digits.
_BRIDGE = re.compile(
    rf"\bStep Time : .{{1,20}}s GPU utilization: ({NUMBER}) ?(?:MODEL_)?TFLOP/s/GPU"
)
# Primus names the rank itself: `[rank-7/8]`.
_RANK = re.compile(r"\[rank-(\d{1,7})/\d{1,7}\]")
_VALUE = re.compile(
    rf"^(?P<number>{NUMBER}|-?(?:nan|inf))"
    r" ?(?:(?P<prefix>[KMGTPEZ])?FLOPS|Gi?B)?"
    r"(?:/[-+.\w%]{1,24}){0,3}(?: \(avg [-+.\w]{1,24}\))?"
)
# Compared with TFLOP/s.
_PREFIXES = {"K": 1e-9, "M": 1e-6, "G": 1e-3, "T": 1.0, "P": 1e3, "E": 1e6, "Z": 1e9}
_MOST = 1e100
# Times of the parts of a step [ms], as the timers of Megatron and DeepSpeed print them:
# `time (ms) | forward-compute: 306.62 | ...` of a rank; `(min, max) time across ranks (ms):` and
# `max time across ranks (ms):` above rows `name ...: (1.20, 3.40)` or `name ...: 3.40` of all.
# Timers have two decimals: with fewer, the line was cut.
_TIMERS = re.compile(r"(?:^|\s)time \(ms\) \|")
_TIMER_OF_RANK = re.compile(r"^\s*([\w/.-]{1,80}(?: [\w/.-]{1,20}){0,5}): (\d{1,15}\.\d\d)\s*")
_TABLE = re.compile(r"(?:^|\s)(\(min, max\)|max) time across ranks \(ms\):\s*$")
_ROW = re.compile(
    r"^\s+(?P<name>[\w/-]{1,80}) ?\.*: "
    r"(?:\((?P<least>\d{1,15}\.\d\d), (?P<most>\d{1,15}\.\d\d)\)|(?P<one>\d{1,15}\.\d\d))"
)
# Sizes that Megatron prints beside its iterations: of the job, the model and the memory.
_METRICS = {"seq_length": "sequence_length", "global_num_gpus": "world_size"}
_ARGUMENT = re.compile(
    r"^\s*(global_batch_size|global_num_gpus|log_interval|seq_length|world_size) \.{3,60} "
    r"(\d{1,12})(?:\.{0,60}(?:updated|default))?"
)
_WORLD = re.compile(r"^\s*(?:> ?)?using world size: (\d{1,9})(?:,.*| and .*)?")
_BATCH = re.compile(r"^\s*> ?global batch size ?[:=] ?(\d{1,12})")
# One line for each model-parallel rank, printed by rank 0 of its data-parallel group.
_MODEL_PART = re.compile(
    r"> number of parameters on \(tensor, pipeline\) model parallel rank "
    r"\((\d{1,6}), (\d{1,6})\): (\d{1,15})(?!\S)"
)
# Once per run; the first releases name no rank. `MB` are MiB, the newer `GB` are 1e9 B. Only the
# maxima that tensors (`allocated`) and the allocator (`reserved`) held are read.
_MEMORY = re.compile(
    r"(?:\[Rank (\d{1,7})\] \()?after (\d{1,15}) iterations\)? memory \((MB|GB)\) \|([^\[]*)"
)
# No bar ends the last field: it was cut where it has no decimals.
_SIZE = re.compile(r"\d{1,15}\.\d{1,20}")
_SCALES = {"MB": 2.0**-10, "GB": 1e9 / 2**30}
_MAXIMA = {
    "max allocated": "max_allocated",
    "max reserved": "max_reserved",
    "max cached": "max_reserved",
    "mem max allocated gigabytes": "max_allocated",
    "mem max reserved gigabytes": "max_reserved",
}


class Megatron(Coded):
    """Parser of the logs of Megatron and its descendants; `wants_next`: a table is open."""

    def __init__(self) -> None:
        self._intervals = Intervals()
        self._every = 0
        self._step: int | None = None

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of the iterations, timers, memory or arguments on the line."""
        text = line.text
        row = _ROW.fullmatch(text) if self.wants_next else None
        self.wants_next = row is not None
        if row is not None:
            if row["least"]:
                yield self._timer(row["least"], f"{row['name']} min")
            yield self._timer(row["most"] or row["one"], f"{row['name']} max")
        elif heads := list(_ITERATION.finditer(text)):
            ends = [head.start() for head in heads[1:]]
            for head, end in zip(heads, [*ends, len(text)], strict=True):
                yield from self._iteration(line, head, end)
        elif match := _BRIDGE.search(text):
            value = number(match[1])
            # 0.0 means "unknown": models without a FLOP count.
            if value is not None and 0 < value < _MOST:
                yield Hit("tflops", value, "per_gpu", steps=self._every or 1)
        elif _STARTS.search(text):
            yield Unreadable()
        elif match := _VALIDATION.search(text):
            step = int(match["step"]) if match["step"] else None
            losses = [number(shown) for key, shown in fields(match["rest"])[0] if key in _LOSSES]
            for value in (one for one in losses if one is not None):
                yield Hit("loss", value, "global", step, variant="validation")
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
        for key, text in found:
            field = self.fields.get(key)
            if field is None:
                continue
            match = _VALUE.fullmatch(text)
            value = number(match["number"]) if match else None
            if match is None:
                yield Unreadable()
            elif value is not None and abs(value) <= _MOST:
                value *= _PREFIXES.get(match["prefix"] or "", 1.0)
                yield field.hit(value, step, steps, rank)
        if cut in self.fields:
            yield Unreadable()

    def _timer(self, text: str, name: str, scope: Scope = "global") -> Hit:
        return Hit("phase_time", scaled(float(text), 1e-3), scope, self._step, variant=name)

    def _others(self, text: str) -> Iterator[Hit]:
        self.wants_next = "time across ranks" in text and _TABLE.search(text) is not None
        # A search for a literal costs a tenth of that for the pattern.
        timers = _TIMERS.search(text) if "time (ms) |" in text else None
        for part in text[timers.end() :].split("|") if timers else ():
            if match := _TIMER_OF_RANK.fullmatch(part):
                yield self._timer(match[2], match[1], "per_rank")
        # Ranks write several reports into one line.
        for rank, step, unit, rest in _MEMORY.findall(text):
            for key, value in fields(rest + "|")[0]:
                variant = _MAXIMA.get(key)
                if variant and _SIZE.fullmatch(value):
                    size, who = float(value) * _SCALES[unit], int(rank) if rank else OF_LINE
                    yield Hit("memory", size, "per_rank", int(step), who, variant=variant)
        for tensor, pipeline, count in _MODEL_PART.findall(text):
            part = f"tensor {int(tensor)}, pipeline {int(pipeline)}"
            yield Hit("parameters", float(count), "per_rank", variant=part, once=part)
        yield from self._setup(text)

    def _setup(self, text: str) -> Iterator[Hit]:
        if match := _ARGUMENT.fullmatch(text):
            name, value = _METRICS.get(match[1], match[1]), int(match[2])
        elif match := _WORLD.fullmatch(text):
            name, value = "world_size", int(match[1])
        elif match := _BATCH.fullmatch(text):
            name, value = "global_batch_size", int(match[1])
        else:
            return
        if name == "log_interval":
            self._every = value
        else:
            yield Hit(name, float(value), "global", once=name)


# DeepSpeed's engines: the throughput timer, the pipeline engine, the optimiser's step.

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
_TRAIN_BATCH = re.compile(
    r"\btrain_batch_size \.{3,60} (\d{1,12})(?:\.{0,60}(?:updated|default))?$"
)
_ACCUMULATED = re.compile(r"\bgradient_accumulation_steps \.{2,60} (\d{1,9})$")
_RANKS = re.compile(
    r"\bdist_world_size=(\d{1,9})$|\bDiscovered MPI settings of .{1,80}? world_size=(\d{1,9}),"
)
_CONFIG_WORLD = re.compile(r"\[config\.py:\d{1,6}:\w{1,20}\] {1,8}world_size \.{3,60} (\d{1,9})$")
# Megatron and its descendants state the number of ranks themselves.
_PARALLEL = re.compile(r"ProcessCoord\(|_parallel_size \.|\busing world size: ")


class DeepSpeed(Coded):
    """Parser of DeepSpeed's lines."""

    def __init__(self) -> None:
        self._intervals = Intervals()
        self._is_parallel = False
        self._accumulated = 1

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values that the engine prints."""
        text = line.text
        if "SamplesPerSec=" in text:
            yield from self._timer(text)
        elif accumulated := _ACCUMULATED.search(text):
            self._accumulated = int(accumulated[1])
        for match in _PIPELINE.finditer(text):
            step = int(match["step"])
            yield from self.stated(match.groupdict(""), step, self._intervals.since(line, step))
        for stated, rate in _OPTIMISER.findall(text):
            yield from self.stated({"lr": rate}, int(stated))
        for size in _TRAIN_BATCH.findall(text):
            yield Hit("global_batch_size", float(size), "global", once="global_batch_size")
        self._is_parallel = self._is_parallel or _PARALLEL.search(text) is not None
        ranks = _RANKS.search(text) or (None if self._is_parallel else _CONFIG_WORLD.search(text))
        if ranks is not None:
            size = next(filter(None, ranks.groups()))
            yield Hit("world_size", float(size), "global", once="world_size")

    def _timer(self, text: str) -> Iterator[Hit | Unreadable]:
        found = {match["key"]: match["value"] for match in _TIMER.finditer(text)}
        step = countable(number(found.pop("global_step", "")))
        if not any(key.endswith("SamplesPerSec") for key in found):
            yield Unreadable()
        if self._accumulated > 1 and "global_step=" not in text:
            found = {key: found[key] for key in found if key == "MaxMemAllocated"}
        yield from self.stated(found, step)
