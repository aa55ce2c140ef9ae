"""Measurements of a run without a result -> what is wrong with them, and what to do next."""

from __future__ import annotations

import pandas as pd

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.study import Warmup
from hpc_train.tables.steps import StepSummary


def without_result(table: pd.DataFrame, steps: StepSummary, study: ExpectedStudy) -> str:
    """Return in one line why a completed run gives no row, and the next thing to try."""
    if steps.seen and not steps.steps:
        # Only a study has a file in which the warm-up can be changed.
        change = "lower warmup.steps or run longer" if study.scaling else "run longer"
        return (
            f"no measured step: {steps.seen} in the log, warm-up {warmup_words(study.warmup)}; "
            f"{change}"
        )
    if steps.steps:
        return "step times are not positive; print seconds a step, measured by a monotonic clock"
    if table.empty:
        return "no line with a time or rate that any parser knows; see docs/events.md"
    found = ", ".join(dict.fromkeys(table["metric"]))
    rates = table[table["metric"].isin(["samples_per_second", "tokens_per_second"])]
    if (rates["scope"] == "per_gpu").any():
        return (
            f"{rates['metric'].iloc[0]} is per GPU, and no line says how many GPUs there were; "
            "let the run print world_size (docs/events.md)"
        )
    if len(rates):
        return (
            f"{rates['metric'].iloc[0]} of {rates['who'].nunique()} of several ranks only, or not "
            "positive; keep the log of every rank, or print the rate of all with scope global"
        )
    return f"the log has {found}, but no time or rate of training; see docs/events.md"


def warmup_words(warmup: Warmup) -> str:
    """Return `10 steps`, `10 steps and 60 s`."""
    steps = f"{warmup.steps} step{'s' if warmup.steps != 1 else ''}"
    return f"{steps} and {warmup.seconds:g} s" if warmup.seconds else steps
