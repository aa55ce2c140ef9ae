"""Record: one measurement, with its unit, scope and source line."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.log_selection import StatedScope
from hpc_train.model.metrics import METRICS
from hpc_train.model.value import Value

Scope = Literal[StatedScope, "unknown"]

# Those that become metrics of runs, and those that stay what one line says.
UNITS: dict[str, str] = {
    **{metric.record: metric.unit for metric in METRICS if metric.record},
    "global_batch_size": "1",
    "phase_time": "s",
    "iteration_time": "s",
    "not_finite": "1",
    "grad_norm": "1",
    "gflops": "GFLOP/s",
    "solve_time": "s",
    "residual": "1",
    "power": "W",
    "algbw": "GB/s",
    "busbw": "GB/s",
    "message_size": "B",
    "latency": "us",
    "wrong_values": "1",
    "batch_size": "1",
    "sequence_length": "1",
    "world_size": "1",
    "examples": "1",
    "parameters": "1",
    "epoch": "1",
    "seed": "1",
    "threads": "1",
    "condition": "1",
}


class Record(Value, frozen=True, kw_only=True, gc=False):
    """One value of one metric from one line of a log.

    `accuracy` and `mfu` are fractions, 0 to 1. `step` counts from 1 within the run. `rank` is the
    global rank that printed the line, None when the line does not say. `steps` is the number of
    steps that the value is the mean of: a line of a log that reports every tenth step has 10.
    `variant` distinguishes two values of one metric on one line (`out_of_place`, `in_place`), and
    `message_size` [B] is the message size of a bandwidth or latency. The metric `not_finite` counts
    a value that is NaN or infinite: `variant` is `loss`. The metric `condition` is a condition of
    the run: `variant` is `torch=2.13.0`.
    """

    run: str
    source: str
    line: int
    parser: str
    metric: str
    value: float
    unit: str
    scope: Scope
    step: int | None = None
    rank: int | None = None
    node: str | None = None
    steps: int = 1
    message_size: int | None = None
    variant: str = ""
