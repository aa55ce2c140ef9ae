"""DeepSpeed's engines: the throughput timer, the pipeline engine, the optimiser's step.

| line | metric | scope |
|---|---|---|
| `.../global_step=n, RunningAvgSamplesPerSec=..` | samples_per_second, running_average | global |
| `CurrSamplesPerSec=..` (older: `SamplesPerSec=..`) | samples_per_second | global |
| `MaxMemAllocated=..GB` | memory [GiB, in spite of the name] | per rank |
| `steps: n loss: .. iter time (s): .. samples/sec: ..` | as named, since the last line | global |
| `[Rank 0] step=n, skipped=k, lr=[..], mom=[..]` | learning_rate of the first group | global |
| `train_batch_size ..... 1024` | global_batch_size | global |
| `dist_world_size=8`, `Discovered MPI settings of .. world_size=8,` | world_size | global |
| `[config.py:1000:print]   world_size ..... 8` | world_size, see below | global |

The running average covers the run without its first steps. Rates without a global_step come from
old versions, which did not count accumulated gradients: in runs with gradient accumulation, these
rates are omitted. Printed by rank 0. The configuration's world_size is the number of data parallel
ranks: it is ignored in runs with Megatron or a pipeline, which have further ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import COUNTABLE, NUMBER, number
from hpc_train.records.parsing.step_counts import Intervals

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
_BATCH = re.compile(r"\btrain_batch_size \.{3,60} (\d{1,12})(?:\.{0,60}(?:updated|default))?$")
_ACCUMULATED = re.compile(r"\bgradient_accumulation_steps \.{2,60} (\d{1,9})$")
_WORLD = re.compile(
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
    states: Mapping[str, Scope] = {"samples_per_second": "global", "memory": "per_rank"}
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
            yield from (hit for hit in _timer(text) if not (is_wrong and _is_rate(hit)))
        elif accumulated := _ACCUMULATED.search(text):
            self._accumulated = int(accumulated[1])
        for match in _PIPELINE.finditer(text):
            yield from self._pipeline(line, match)
        for step, rate in _OPTIMISER.findall(text):
            value = number(rate)
            if value is not None:
                yield Hit("learning_rate", value, "global", int(step))
        for size in _BATCH.findall(text):
            yield Hit("global_batch_size", float(size), "global", once="global_batch_size")
        yield from self._world(text)

    def _world(self, text: str) -> Iterator[Hit]:
        self._is_parallel = self._is_parallel or _PARALLEL.search(text) is not None
        match = _WORLD.search(text) or (None if self._is_parallel else _CONFIG_WORLD.search(text))
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


def _is_rate(hit: Hit | Unreadable) -> bool:
    return isinstance(hit, Hit) and hit.metric == "samples_per_second"


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
