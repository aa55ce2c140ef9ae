"""Batches -> sbatch; the request is recorded before the call, the answer after it."""

from __future__ import annotations

import datetime
import uuid
from collections import deque
from collections.abc import Sequence

import msgspec

from hpc_train.errors import SubmitError
from hpc_train.model.submission import Submission
from hpc_train.model.value import Value
from hpc_train.submissions.base import ExecutorOptions
from hpc_train.submissions.slurm.job_arrays import SbatchCall
from hpc_train.submissions.slurm.job_states import MARK
from hpc_train.submissions.slurm.sbatch import Call, Sbatch, begin, hand_over
from hpc_train.submissions.submission_file import write

# From this number on, the next sbatch starts while the previous one waits for its answer: half of
# its time is its own start. Fewer calls are sequential, so that job ids have the order of the runs.
_MANY = 16


class _Asked(Value, frozen=True, kw_only=True):
    batch: SbatchCall
    submission: Submission
    call: Call


def submit_batches(todo: Sequence[SbatchCall], terms: ExecutorOptions) -> None:
    """Submit batches, and write each run's submission.json.

    Raises:
        SubmitError: one was refused; later ones were not submitted, or are recorded as well.
    """
    ahead = 1 if len(todo) >= _MANY else 0
    asked: deque[_Asked] = deque()
    handed = 0
    try:
        for batch in todo:
            asked.append(_ask(batch, terms))
            if len(asked) > ahead:
                handed += _settle(asked.popleft())
        while asked:
            handed += _settle(asked.popleft())
    except SubmitError as failure:
        handed += sum(map(_settle_late, asked))
        if not handed:
            raise
        total = sum(len(batch.runs) for batch in todo)
        said = f"{handed} of {total} runs were submitted, then: {failure.message}"
        hint = failure.hint or "submit again for the rest"
        raise SubmitError(said, hint, transient=failure.transient) from None


def _ask(batch: SbatchCall, terms: ExecutorOptions) -> _Asked:
    """Record the request, and start sbatch.

    If the process is killed before the answer, the job is found by its comment.
    """
    comment = " ".join(filter(None, (f"{MARK}{uuid.uuid4().hex[:16]}", terms.comment)))
    sbatch = Sbatch(batch=batch, terms=terms, comment=comment)
    submission = Submission(
        executor="slurm",
        native_id="",
        submitted="",
        cluster=terms.cluster,
        comment=comment,
        command=sbatch.command,
        shared=batch.shared,
    )
    call = begin(sbatch, lambda: _record(batch, submission, ""))
    return _Asked(batch=batch, submission=submission, call=call)


def _settle(asked: _Asked) -> int:
    """Record the answer; return the number of submitted runs."""
    batch = asked.batch
    try:
        job = hand_over(asked.call)
    except SubmitError as failure:
        if not failure.transient:
            for run in batch.runs:
                run.submission.unlink(missing_ok=True)
            if batch.shared:
                batch.script.unlink(missing_ok=True)
        raise
    _record(batch, asked.submission, job)
    return len(batch.runs)


def _settle_late(asked: _Asked) -> int:
    """Record the answer of a call that was in progress when the previous one was refused."""
    try:
        return _settle(asked)
    except SubmitError:
        return 0


def _record(batch: SbatchCall, asked: Submission, job: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    for run in batch.runs:
        native_id = batch.native_id(run, job)
        write(run, msgspec.structs.replace(asked, native_id=native_id, submitted=now))
