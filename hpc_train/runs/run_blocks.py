"""Runs of a nested study -> the blocks that they form in their allocations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from hpc_train.model.run import Run


def run_blocks(runs: Iterable[tuple[Run, int]]) -> dict[str, str]:
    """Return run id -> block, from runs with their repetitions.

    The runs of one repetition are a block if they ran in one allocation without a run of another
    repetition between them: they share the nodes and the time. An allocation in which repetitions
    overlap, or in which the start of a run is not known, has no blocks.
    """
    allocations: dict[str, list[tuple[float, int, str]]] = {}
    unknown: set[str] = set()
    for run, repetition in runs:
        submission = run.submission
        if submission is None or not submission.shared or not submission.answered:
            continue
        if run.status is None:
            unknown.add(submission.native_id)
            continue
        own = allocations.setdefault(submission.native_id, [])
        own.append((run.status.started, repetition, run.folder.run_id))
    blocks: dict[str, str] = {}
    for job, own in allocations.items():
        if job not in unknown and _in_turn([repetition for _, repetition, _ in sorted(own)]):
            blocks |= {run_id: f"{job}/{repetition}" for _, repetition, run_id in own}
    return blocks


def _in_turn(repetitions: Sequence[int]) -> bool:
    """Whether equal numbers are neighbours."""
    turns = [number for number, _ in groupby(repetitions)]
    return len(turns) == len(set(turns))
