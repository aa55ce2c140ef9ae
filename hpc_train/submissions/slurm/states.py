"""Slurm's job states -> states of runs; an unknown state is not final."""

from __future__ import annotations

from functools import cache
from typing import Literal

from hpc_train.decode import load_data
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value


class _State(Value, frozen=True, kw_only=True):
    state: JobState
    meaning: str = ""


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    states: dict[str, _State]


@cache
def _states() -> dict[str, _State]:
    return load_data("slurm_states.yaml", _File).states


def is_ending(said: str) -> bool:
    """Whether a sentence of `job_state` means that the job is ending."""
    return said == _states()["COMPLETING"].meaning


def job_state(word: str) -> tuple[JobState, str]:
    """Return the state for a state of Slurm and, if it contains more information, a sentence."""
    found = _states().get(word)
    if found is not None:
        return found.state, found.meaning
    name, _, tail = word.strip().partition(" ")
    if name == "CANCELLED" and tail.startswith("by "):
        return JobState.CANCELLED, f"cancelled by user id {tail[3:].strip()}"
    return JobState.UNKNOWN, f"unknown state of Slurm: {word.strip()!r}"
