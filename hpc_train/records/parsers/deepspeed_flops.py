"""DeepSpeed's flops profiler: a block of lines about one step, `Profile Summary at step n:`.

| line | metric | scope |
|---|---|---|
| `world size:`, `batch size per GPU:` | world_size, batch_size | global, per GPU |
| `fwd+bwd FLOPS per GPU = ...: 3.3 TFLOPS` | tflops, variant forward_backward | per GPU |
| `FLOPS per GPU = ... / iter latency: 2.4 TFLOPS` | tflops, variant profiled | per GPU |
| `iter latency: 487.61 ms` | step_time, variant profiled | per rank |
| `samples/second: 196.88` | samples_per_second, variant profiled | global |

The profiled step is slower than the others. Times in s, ms or us.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled

_HEAD = re.compile(r"\bProfile Summary at step (\d{1,15}):?")
_ROW = re.compile(
    rf"(?P<key>(?:fwd\+bwd )?FLOPS per GPU|[a-zA-Z/ ]{{5,30}}?)(?: = [^:]{{1,80}})?:\s{{1,80}}"
    rf"(?P<value>{NUMBER})(?: (?P<unit>[a-zA-Z]{{1,8}}))?"
)
_ROWS = {
    "world size": Field("world_size", "global"),
    "batch size per GPU": Field("batch_size", "per_gpu"),
    "fwd+bwd FLOPS per GPU": Field("tflops", "per_gpu", variant="forward_backward"),
    "FLOPS per GPU": Field("tflops", "per_gpu", variant="profiled"),
    "iter latency": Field("step_time", "per_rank", variant="profiled"),
    "samples/second": Field("samples_per_second", "global", variant="profiled"),
}
_UNITS = {
    "": 1.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "GFLOPS": 1e-3,
    "TFLOPS": 1.0,
    "PFLOPS": 1e3,
}
_MOST = 1e100


class DeepSpeedFlops:
    """Parser of the profiler's block."""

    title = "DeepSpeed's flops profiler"
    literals = (
        b"Profile Summary at step ",
        b"world size: ",
        b"batch size per GPU: ",
        b"FLOPS per GPU = ",
        b"iter latency: ",
        b"samples/second: ",
    )
    sample = (
        "Profile Summary at step 10:\n"
        "world size:                                             8       \n"
        "batch size per GPU:                                     16      \n"
        "fwd+bwd FLOPS per GPU = 3 * fwd flops per GPU / (fwd+bwd latency):   45.2 TFLOPS\n"
        "iter latency:                                           412.5 ms\n"
        "samples/second:                                         310.3   \n"
    )
    states: Mapping[str, Scope] = {
        "world_size": "global",
        "batch_size": "per_gpu",
        "tflops": "per_gpu",
        "step_time": "per_rank",
        "samples_per_second": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._step: int | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the value of a row, after the header of a block."""
        if head := _HEAD.search(line.text):
            self._step = int(head[1])
        match = _ROW.fullmatch(line.text)
        if self._step is None or match is None:
            return
        field, unit = _ROWS.get(match["key"]), _UNITS.get(match["unit"] or "")
        value = number(match["value"])
        # The profiler prints negative values if its timers did not run.
        if field and unit and value is not None and 0 < value < _MOST:
            value = scaled(value, unit * field.scale)
            yield Hit(field.metric, value, field.scope, self._step, variant=field.variant)
