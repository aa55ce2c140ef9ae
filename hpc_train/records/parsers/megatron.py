"""Megatron-LM, Core, Bridge, -DeepSpeed, GPT-NeoX, Primus: `iteration n/ N | key: v |`.

The fields of a line, their order and their spelling (`lm loss`, `lm-loss`, `lm_loss=`) differ by
generation, so fields are read by name (`megatron_metrics`). They are printed by the last rank
(GPT-NeoX, Megatron-DeepSpeed: rank 0) for the whole job: times [ms] and losses are global and the
mean of the log interval; TFLOP/s and tokens/s are per GPU unless the key states another scope. Of
a pair `now/mean` (Primus), the first value is used. Also read:

| line | metric | scope |
|---|---|---|
| `world_size ..... 16` and the like, `using world size: 16, ...` | world_size, ... | global |
| `validation loss at iteration n \\| lm loss value: ...` | loss, variant validation | global |
| `[Rank r] (after n iterations) memory (MB) \\| ...` | memory, variant max_... | per rank |
| `Step Time : 5.39s GPU utilization: 2347.0MODEL_TFLOP/s/GPU` (Bridge) | tflops | per GPU |
| `time (ms) \\| name: ...`, `(min, max) time across ranks (ms):` | phase_time | both |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import fields
from hpc_train.records.parsing.log_parser import OF_LINE, Hit, Unreadable
from hpc_train.records.parsing.megatron_metrics import FIELDS, MOST, reading
from hpc_train.records.parsing.megatron_setup_and_memory import MODEL, SETUP, memory, model, setup
from hpc_train.records.parsing.megatron_timers import Table, phases
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled
from hpc_train.records.parsing.step_counts import Intervals

_HEAD = re.compile(r"iteration[ =]\s*(?P<step>\d{1,15})\s*/\s*\d{1,15}\s*\|")
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
    states: Mapping[str, Scope] = {
        "world_size": "global",
        "step_time": "global",
        "tflops": "per_gpu",
        "learning_rate": "global",
        "global_batch_size": "global",
        "loss": "global",
        "grad_norm": "global",
    }

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
        elif heads := list(_HEAD.finditer(text)):
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
