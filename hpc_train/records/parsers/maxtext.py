"""MaxText and MaxDiffusion: `completed step: n, seconds: .., TFLOP/s/device: .., .., loss: ..`.

| field | metric | unit | scope |
|---|---|---|---|
| seconds | step_time, of this step | s | global |
| TFLOP/s/device | tflops, likewise | TFLOP/s | per GPU |
| Tokens/s/device | tokens_per_second, likewise | 1/s | per GPU |
| loss | loss, of the batch of all devices | 1 | global |

As `metric_logger.py` prints them, on every process or on the first one; steps count from 0.
"""

from __future__ import annotations

import re

from hpc_train.records.parsers.pattern import PatternParser

# All have three decimals: a number that was cut has fewer.
_N = r"\d{1,15}\.\d{3}(?!\d)"

PARSER = PatternParser(
    title="MaxText, MaxDiffusion",
    literals=(b"completed step: ",),
    pattern=re.compile(
        rf"\bcompleted step: (?P<step>\d{{1,15}}), seconds: (?P<step_time>{_N})"
        r"(?:, train_step_time_ms: \d{1,15}\.\d\d)?"
        rf"(?:, TFLOP/s/device: (?P<tflops>{_N}))?"
        rf"(?:, Tokens/s/device: (?P<tokens_per_second>{_N}))?"
        rf"(?:, total_weights: [\d.]{{1,20}})?(?:, loss: (?P<loss>-?{_N}))?"
    ),
    states={
        "step_time": "global",
        "tflops": "per_gpu",
        "tokens_per_second": "per_gpu",
        "loss": "global",
    },
    sample=(
        "completed step: 5, seconds: 0.272, TFLOP/s/device: 155.298, Tokens/s/device: 3764.512, "
        "total_weights: 2837, loss: 10.179"
    ),
)
