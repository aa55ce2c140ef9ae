"""MaxText and MaxDiffusion: `completed step: n, seconds: .., TFLOP/s/device: .., .., loss: ..`.

| field | metric | unit | scope |
|---|---|---|---|
| seconds | step_time, of this step | s | global |
| TFLOP/s/device | tflops, likewise | TFLOP/s | per GPU |
| Tokens/s/device | tokens_per_second, likewise | 1/s | per GPU |
| loss | loss, of the batch of all devices | 1 | global |

`metric_logger.py` prints these lines on every process or on the first one; steps count from 0. The
first versions print `TFLOP/s`, which is also per device. Steps are timed without waiting for the
device: the first step of a log includes the compilation, the second may be the dispatch alone, and
both have the variant startup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number

# All have three decimals: a truncated number has fewer.
_N = r"\d{1,15}\.\d{3}(?!\d)"
_LINE = re.compile(
    rf"\bcompleted step: (?P<step>\d{{1,12}}), seconds: (?P<step_time>{_N})"
    r"(?:, train_step_time_ms: \d{1,15}\.\d\d)?"
    rf"(?:, TFLOP/s(?:/device)?: (?P<tflops>{_N}))?"
    rf"(?:, Tokens/s/device: (?P<tokens_per_second>{_N}))?"
    rf"(?:, total_weights: [\d.]{{1,20}})?(?:, loss: (?P<loss>-?{_N}))?"
)
_STARTING = 2


class MaxText:
    """Parser of the lines; remembers the first step since the last start."""

    title = "MaxText, MaxDiffusion"
    literals = (b"completed step: ",)
    sample = (
        "completed step: 5, seconds: 0.272, TFLOP/s/device: 155.298, Tokens/s/device: 3764.512, "
        "total_weights: 2837, loss: 10.179"
    )
    states: Mapping[str, Scope] = {
        "step_time": "global",
        "tflops": "per_gpu",
        "tokens_per_second": "per_gpu",
        "loss": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._first: int | None = None
        self._last = 0

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of a step."""
        match = _LINE.search(line.text)
        if match is None:
            return
        step = int(match["step"])
        if self._first is None or step < self._last:
            self._first = step
        self._last = step
        startup = "startup" if step - self._first < _STARTING else ""
        for metric, scope in self.states.items():
            value = number(match[metric] or "")
            if value is not None:
                variant = "" if metric == "loss" else startup
                yield Hit(metric, value, scope, step, variant=variant)
