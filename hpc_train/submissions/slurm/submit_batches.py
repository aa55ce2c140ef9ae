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
from hpc_train.submissions.slurm.sbatch import Call, Sbatch, await_job_id, start_sbatch
from hpc_train.submissions.submission_file import write

# From this number on, the next sbatch starts while the previous one waits for its answer: half of
# its time is its own start. Fewer calls are sequential, so that job ids have the order of the runs.
_MANY = 16


class _Request(Value, frozen=True, kw_only=True):
    batch: SbatchCall
    submission: Submission
    call: Call


def submit_batches(todo: Sequence[SbatchCall], options: ExecutorOptions) -> None:
    """Submit batches, and write each run's submission.json.

    Raises:
        SubmitError: one was refused; later ones were not submitted, or are recorded as well.
    """
    ahead = 1 if len(todo) >= _MANY else 0
    request: deque[_Request] = deque()
    submitted = 0
    try:
        for batch in todo:
            request.append(_request(batch, options))
            if len(request) > ahead:
                submitted += _finish(request.popleft())
        while request:
            submitted += _finish(request.popleft())
    except SubmitError as failure:
        submitted += sum(map(_finish_late, request))
        if not submitted:
            raise
        total = sum(len(batch.runs) for batch in todo)
        message = f"{submitted} of {total} runs were submitted, then: {failure.message}"
        hint = failure.hint or "submit again for the rest"
        raise SubmitError(message, hint, transient=failure.transient) from None


def _request(batch: SbatchCall, options: ExecutorOptions) -> _Request:
    """Record the request, and start sbatch.

    If the process is killed before the answer, the job is found by its comment.
    """
    comment = " ".join(filter(None, (f"{MARK}{uuid.uuid4().hex[:16]}", options.comment)))
    sbatch = Sbatch(batch=batch, executor_options=options, comment=comment)
    submission = Submission(
        executor="slurm",
        native_id="",
        submitted="",
        cluster=options.cluster,
        comment=comment,
        command=sbatch.command,
        shared=batch.shared,
    )
    call = start_sbatch(sbatch, lambda: _record(batch, submission, ""))
    return _Request(batch=batch, submission=submission, call=call)


def _finish(request: _Request) -> int:
    """Record the answer; return the number of submitted runs."""
    batch = request.batch
    try:
        job = await_job_id(request.call)
    except SubmitError as failure:
        if not failure.transient:
            for run in batch.runs:
                run.submission.unlink(missing_ok=True)
            if batch.shared:
                batch.script.unlink(missing_ok=True)
        raise
    _record(batch, request.submission, job)
    return len(batch.runs)


def _finish_late(request: _Request) -> int:
    """Record the answer of a call that was in progress when the previous one was refused."""
    try:
        return _finish(request)
    except SubmitError:
        return 0


def _record(batch: SbatchCall, request: Submission, job: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    for run in batch.runs:
        native_id = batch.native_id(run, job)
        write(run, msgspec.structs.replace(request, native_id=native_id, submitted=now))
