"""fms-fsdp: blocks that start with `step: n`, one value per line.

| line | metric | unit | scope |
|---|---|---|---|
| `current step time:` | step_time, mean since the last block | s | global |
| `overall step time:` | step_time, variant overall: mean of the run | s | global |
| `current token per gpu per sec:`, `overall ...` | tokens_per_second, likewise | 1/s | per GPU |
| `loss:`, right after the step; `gradient norm:` | loss, grad_norm, likewise | 1 | global |
| `reserved memory:` [B], `max reserved memory (GiB):` | memory | GiB | per rank |

Printed by rank 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled
from hpc_train.records.parsing.step_counts import Intervals

_ROW = re.compile(rf"(?P<key>[a-z][a-zA-Z ()]{{3,40}}): (?P<value>{NUMBER})")
_FIELDS = {
    "loss": Field("loss", "global", mean=True),
    "gradient norm": Field("grad_norm", "global", mean=True),
    "reserved memory": Field("memory", "per_rank", 2.0**-30),
    "max reserved memory (GiB)": Field("memory", "per_rank"),
    "current step time": Field("step_time", "global", mean=True),
    "overall step time": Field("step_time", "global", variant="overall"),
    "current token per gpu per sec": Field("tokens_per_second", "per_gpu", mean=True),
    "overall token per gpu per sec": Field("tokens_per_second", "per_gpu", variant="overall"),
}


class FmsFsdp:
    """Parser of the report of fms-fsdp's training loop."""

    title = "fms-fsdp"
    literals = (b"step: ", *(f"{key}: ".encode() for key in _FIELDS if key != "loss"))
    sample = (
        "step: 100\n"
        "loss: 4.25\n"
        "gradient norm: 0.5\n"
        "reserved memory: 42949672960\n"
        "current step time: 1.25\n"
        "overall step time: 1.3\n"
        "current token per gpu per sec: 6553\n"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "grad_norm": "global",
        "memory": "per_rank",
        "step_time": "global",
        "tokens_per_second": "per_gpu",
    }

    def __init__(self) -> None:
        self._intervals = Intervals()
        self._step: int | None = None
        self._steps = 1
        self.wants_next = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the value of a row; rows before the first step belong to other tables."""
        self.wants_next = False
        row = _ROW.fullmatch(line.text)
        value = number(row["value"]) if row else None
        if row is None or value is None:
            return
        if row["key"] == "step" and row["value"].isdecimal() and len(row["value"]) < 16:
            self._step = int(row["value"])
            self._steps = self._intervals.since(line, self._step)
            self.wants_next = True
        field = _FIELDS.get(row["key"])
        if field is not None and self._step is not None:
            steps = self._steps if field.mean else 1
            value = scaled(value, field.scale)
            yield Hit(
                field.metric, value, field.scope, self._step, steps=steps, variant=field.variant
            )
