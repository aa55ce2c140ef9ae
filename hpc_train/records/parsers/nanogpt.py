"""nanoGPT: `iter N: loss L, time Tms, mfu P%`.

Printed by the master rank. The time is that of one optimiser step, with all its accumulation
steps. MFU is a running mean; -100 % means that it has no value yet, and is omitted.
"""

from __future__ import annotations

import re

from hpc_train.records.parsing.single_regex_parser import PatternParser

PARSER = PatternParser(
    title="nanoGPT",
    literals=(b"iter ",),
    pattern=re.compile(
        r"\biter (?P<step>\d+): loss (?P<loss>\S+), time (?P<step_time>[\d.]+)ms"
        r"(?:, mfu (?P<mfu>[\d.]+)%)?"
    ),
    states={"loss": "per_rank", "step_time": "per_rank", "mfu": "per_rank"},
    scale={"step_time": 1e-3, "mfu": 1e-2},
    sample="iter 100: loss 3.2847, time 135.21ms, mfu 38.04%",
)
