"""nanoGPT: `iter N: loss L, time Tms, mfu P%`, `tokens per iteration will be: N`.

Printed by the master rank. The time is that of one optimiser step, with all its accumulation
steps. MFU is a running mean; -100 % means that it has no value yet, and is omitted.
"""

from __future__ import annotations

import re

from hpc_train.records.parsing.single_regex_parser import PatternParser

PARSER = PatternParser(
    title="nanoGPT",
    literals=(b"iter ", b"okens per ", b"okens_per_"),
    pattern=re.compile(
        r"\biter (?P<step>\d+): loss (?P<loss>\S+), time (?P<step_time>[\d.]+)ms"
        r"(?:, mfu (?P<mfu>[\d.]+)%)?"
        r"|\btokens[ _]per[ _](?:iter|iteration|step)(?: will be)? {0,2}[:=] {0,2}"
        r"(?P<tokens_per_step>\d[\d,]*)(?![\d.])"
    ),
    states={
        "loss": "per_rank",
        "step_time": "per_rank",
        "mfu": "per_rank",
        "tokens_per_step": "global",
    },
    scale={"step_time": 1e-3, "mfu": 1e-2},
    sample=(
        "tokens per iteration will be: 491,520\niter 100: loss 3.2847, time 135.21ms, mfu 38.04%"
    ),
)
