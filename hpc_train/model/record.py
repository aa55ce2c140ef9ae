"""Record: one measurement, with its unit, scope and source line."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

StatedScope = Literal["global", "per_gpu", "per_rank"]
Scope = Literal[StatedScope, "unknown"]

UNITS: dict[str, str] = {
    "step_time": "s",
    "epoch_time": "s",
    "time_to_train": "s",
    "first_step_time": "s",
    "phase_time": "s",
    "iteration_time": "s",
    "samples": "1",
    "samples_per_second": "1/s",
    "tokens_per_second": "1/s",
    "loss": "1",
    "not_finite": "1",
    "accuracy": "1",
    "grad_norm": "1",
    "tflops": "TFLOP/s",
    "gflops": "GFLOP/s",
    "solve_time": "s",
    "residual": "1",
    "energy": "J",
    "power": "W",
    "mfu": "1",
    "memory": "GiB",
    "algbw": "GB/s",
    "busbw": "GB/s",
    "message_size": "B",
    "latency": "us",
    "wrong_values": "1",
    "global_batch_size": "1",
    "batch_size": "1",
    "sequence_length": "1",
    "world_size": "1",
    "learning_rate": "1",
    "steps": "1",
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
