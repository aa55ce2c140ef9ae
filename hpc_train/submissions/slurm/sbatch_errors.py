"""Error messages of sbatch -> remedies."""

from __future__ import annotations

from functools import cache
from typing import Literal

from hpc_train.decode import load_data
from hpc_train.model.value import Value


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    refusals: dict[str, str]


@cache
def _refusals() -> dict[str, str]:
    return load_data("slurm_refusals.yaml", _File).refusals


def advice(message: str) -> str:
    """Return the next command, or an empty text for an unknown message."""
    lowercase = message.lower()
    return next((hint for words, hint in _refusals().items() if words in lowercase), "")
