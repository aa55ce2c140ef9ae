"""Sizes that may fit, and none that certainly does -> what to try first, and what would decide."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.advice.question import Question
from hpc_train.model.advice import AdviceRow, RankMemory
from hpc_train.model.quantity_text import range_text

_GIB = 2.0**30


def first_to_try(rows: Sequence[AdviceRow], question: Question) -> str:
    """Return the smallest size, with least memory, that may fit, and what would make it certain."""
    row = min(rows, key=_least)
    where, memory = f"{row.strategy} on {question.counted(row.ranks)}", row.memory
    if memory is None:
        return (
            "No recommendation: without the number of parameters the memory is unknown. "
            "Count it: --program MODULE:FUNCTION, or state it: --condition parameters=7e9."
        )
    needs = f"needs {_gib(memory)} GiB"
    if question.machine.most_gib is None:
        what = "GPU" if question.machine.gpus_per_node else "node"
        return f"No recommendation, as the memory of the {what} is unknown: {where} {needs}."
    return f"No strategy certainly fits. First to try: {where}, which {needs}; {_next(row, memory)}"


def _least(row: AdviceRow) -> tuple[int, float]:
    return row.ranks, 0.0 if row.memory is None else row.memory.whole.low


def _gib(memory: RankMemory) -> str:
    return range_text(memory.whole.times(1 / _GIB)).replace(">=", "at least")


def _next(row: AdviceRow, memory: RankMemory) -> str:
    if memory.activations.high is not None:
        return "a run of a few steps decides: --measured RUN."
    if row.samples is None:
        return "the batch is unknown: --condition global_batch=512."
    return (
        "its activations are unknown. Count them: --program MODULE:FUNCTION, or measure a few "
        "steps: --measured RUN."
    )
