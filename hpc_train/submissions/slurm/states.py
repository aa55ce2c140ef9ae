"""Slurm's words for the state of a job -> ours, each of them by name; unknown is not finished."""

from __future__ import annotations

from hpc_train.model.submission import JobState

ENDING = "it is ending"

# man squeue and man sacct, JOB STATE CODES, and the further flags that libslurm 22.05 prints;
# EXPEDITING is of 25.11. A flag that says nothing about the state is UNKNOWN.
_STATES: dict[str, tuple[JobState, str]] = {
    "BOOT_FAIL": (JobState.NODE_FAIL, "a node that it was given could not be booted"),
    "CANCELLED": (JobState.CANCELLED, ""),
    "COMPLETED": (JobState.COMPLETED, ""),
    "COMPLETING": (JobState.RUNNING, ENDING),
    "CONFIGURING": (JobState.PENDING, "its nodes are being prepared"),
    "DEADLINE": (JobState.TIMEOUT, "its deadline passed before it could end"),
    "EXPEDITING": (JobState.PENDING, "Slurm is checking whether to run it again at once"),
    "FAILED": (JobState.FAILED, ""),
    "LAUNCH_FAILED": (JobState.UNKNOWN, "it could not be launched; Slurm may queue it again"),
    "NODE_FAIL": (JobState.NODE_FAIL, "one of its nodes failed"),
    "OUT_OF_MEMORY": (JobState.OUT_OF_MEMORY, "it needed more memory than it had asked for"),
    "PENDING": (JobState.PENDING, ""),
    "POWER_UP_NODE": (JobState.PENDING, "its nodes are being switched on"),
    "PREEMPTED": (JobState.PREEMPTED, "a job that goes first took its place"),
    "RECONFIG_FAIL": (
        JobState.UNKNOWN,
        "its nodes could not be prepared; Slurm may queue it again",
    ),
    "REQUEUED": (JobState.PENDING, "it is being put back into the queue"),
    "REQUEUE_FED": (JobState.PENDING, "it is being put back into the queue of the federation"),
    "REQUEUE_HOLD": (JobState.PENDING, "it was put back into the queue and is held"),
    "RESIZING": (JobState.RUNNING, "its size is being changed"),
    "RESV_DEL_HOLD": (JobState.PENDING, "it is held, because its reservation was deleted"),
    "REVOKED": (JobState.UNKNOWN, "another cluster of the federation runs it"),
    "RUNNING": (JobState.RUNNING, ""),
    "SIGNALING": (JobState.RUNNING, "it is being sent a signal"),
    "SPECIAL_EXIT": (JobState.PENDING, "it was put back into the queue in a special state"),
    "STAGE_OUT": (JobState.RUNNING, "its files are being staged out"),
    "STOPPED": (JobState.SUSPENDED, "it was stopped and keeps its nodes"),
    "SUSPENDED": (JobState.SUSPENDED, "it was suspended and its cores were given to others"),
    "TIMEOUT": (JobState.TIMEOUT, "it reached its time limit"),
    "UPDATE_DB": (JobState.UNKNOWN, "Slurm is writing it to the accounting"),
}


def job_state(word: str) -> tuple[JobState, str]:
    """Return the state that a word of Slurm means and, where the word says more, a sentence."""
    found = _STATES.get(word)
    if found is not None:
        return found
    name, _, tail = word.strip().partition(" ")
    if name == "CANCELLED" and tail.startswith("by "):
        return JobState.CANCELLED, f"cancelled by user id {tail[3:].strip()}"
    return JobState.UNKNOWN, f"Slurm says {word.strip()!r}, which is no state that hpctrain knows"
