"""Slurm's job states -> states of runs; an unknown state is not final."""

from __future__ import annotations

from hpc_train.model.submission import JobState

ENDING = "it is ending"

# man squeue and man sacct, JOB STATE CODES, and the further flags that libslurm 22.05 prints;
# EXPEDITING is of 25.11. A flag without information on the state is UNKNOWN.
_STATES: dict[str, tuple[JobState, str]] = {
    "BOOT_FAIL": (JobState.NODE_FAIL, "an allocated node could not be booted"),
    "CANCELLED": (JobState.CANCELLED, ""),
    "COMPLETED": (JobState.COMPLETED, ""),
    "COMPLETING": (JobState.RUNNING, ENDING),
    "CONFIGURING": (JobState.PENDING, "its nodes are being prepared"),
    "DEADLINE": (JobState.TIMEOUT, "its deadline passed before it could end"),
    "EXPEDITING": (JobState.PENDING, "Slurm is checking whether to requeue it immediately"),
    "FAILED": (JobState.FAILED, ""),
    "LAUNCH_FAILED": (JobState.UNKNOWN, "it could not be launched; Slurm may requeue it"),
    "NODE_FAIL": (JobState.NODE_FAIL, "one of its nodes failed"),
    "OUT_OF_MEMORY": (JobState.OUT_OF_MEMORY, "it used more memory than it had requested"),
    "PENDING": (JobState.PENDING, ""),
    "POWER_UP_NODE": (JobState.PENDING, "its nodes are being powered on"),
    "PREEMPTED": (JobState.PREEMPTED, "a job of higher priority preempted it"),
    "RECONFIG_FAIL": (
        JobState.UNKNOWN,
        "its nodes could not be prepared; Slurm may requeue it",
    ),
    "REQUEUED": (JobState.PENDING, "it is being requeued"),
    "REQUEUE_FED": (JobState.PENDING, "it is being requeued in the federation"),
    "REQUEUE_HOLD": (JobState.PENDING, "it was requeued and is held"),
    "RESIZING": (JobState.RUNNING, "its size is being changed"),
    "RESV_DEL_HOLD": (JobState.PENDING, "it is held, because its reservation was deleted"),
    "REVOKED": (JobState.UNKNOWN, "another cluster of the federation runs it"),
    "RUNNING": (JobState.RUNNING, ""),
    "SIGNALING": (JobState.RUNNING, "it is being sent a signal"),
    "SPECIAL_EXIT": (JobState.PENDING, "it was requeued in a special state"),
    "STAGE_OUT": (JobState.RUNNING, "its files are being staged out"),
    "STOPPED": (JobState.SUSPENDED, "it was stopped and keeps its nodes"),
    "SUSPENDED": (JobState.SUSPENDED, "it was suspended and its cores were given to others"),
    "TIMEOUT": (JobState.TIMEOUT, "it reached its time limit"),
    "UPDATE_DB": (JobState.UNKNOWN, "Slurm is writing it to the accounting"),
}


def job_state(word: str) -> tuple[JobState, str]:
    """Return the state for a state of Slurm and, if it contains more information, a sentence."""
    found = _STATES.get(word)
    if found is not None:
        return found
    name, _, tail = word.strip().partition(" ")
    if name == "CANCELLED" and tail.startswith("by "):
        return JobState.CANCELLED, f"cancelled by user id {tail[3:].strip()}"
    return JobState.UNKNOWN, f"unknown state of Slurm: {word.strip()!r}"
