"""Submission and JobState: what was handed over, to whom, and how it stands."""

from __future__ import annotations

from enum import Enum

from hpc_train.model.value import Value


class JobState(str, Enum):
    """Slurm's words where Slurm has one; UNKNOWN is a state, and is not finished."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    LOST = "LOST"
    UNKNOWN = "UNKNOWN"

    @property
    def finished(self) -> bool:
        """Whether the run will not change any more by itself."""
        return self in _FINISHED


_FINISHED = frozenset(
    {JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.TIMEOUT, JobState.LOST}
)


class Submission(Value, frozen=True, kw_only=True):
    """What an executor accepted; `state` is set when the executor itself ended the run."""

    executor: str
    native_id: str
    submitted: str
    state: JobState | None = None
    reason: str = ""
