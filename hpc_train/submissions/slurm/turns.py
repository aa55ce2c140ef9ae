"""How one run of a shared allocation stands: its own files say whether it had its turn."""

from __future__ import annotations

import msgspec

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobState, Standing
from hpc_train.submissions.record import status_of

# How far the clocks of Slurm and of its nodes may be apart.
_CLOCKS_S = 5.0


def turn(run: RunFolder, allocation: Standing) -> Standing | None:
    """Return how a run stands, given its allocation; None when its own files say all.

    A status.json from before the allocation was queued again tells of an earlier attempt.
    """
    status, begun = status_of(run), allocation.start
    if status is not None and begun is not None and status.started < begun - _CLOCKS_S:
        status = None
    if status is not None and status.ended is not None and allocation.state is not JobState.PENDING:
        return _cut_off(allocation) if allocation.state.finished and run.cut_off.exists() else None
    if allocation.state is JobState.RUNNING and status is None:
        said = f"it waits for its turn in the allocation, job {allocation.job}"
        return msgspec.structs.replace(allocation, state=JobState.PENDING, reason=said, start=None)
    if allocation.state.finished and status is None:
        ended = f"its allocation, job {allocation.job}, ended ({allocation.state.value})"
        said = f"{ended} before its turn"
        return msgspec.structs.replace(allocation, state=JobState.LOST, reason=said)
    return allocation


def _cut_off(allocation: Standing) -> Standing:
    said = f"its allocation, job {allocation.job}, ended in the middle of it"
    return msgspec.structs.replace(allocation, reason=said)
