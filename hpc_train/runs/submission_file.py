"""Writing submission.json at submission and when the end is known; status.json, and whose it is."""

from __future__ import annotations

import datetime
import pwd
from pathlib import Path

import msgspec

from hpc_train.base.files import read_regular, write_atomic
from hpc_train.base.value import decode_unit, encode_unit
from hpc_train.runs.json_files import cannot_write
from hpc_train.runs.run import JobReport, JobState, JobStatus, RunFolder, Submission

# A command that submits may still run: it retries or waits for a slow server.
WITHIN_S = 120.0


def write(run: RunFolder, submission: Submission) -> None:
    """Write a run's submission.json atomically.

    Raises:
        StoreError: the folder is gone or cannot be written.
    """
    content = msgspec.json.encode(submission, enc_hook=encode_unit) + b"\n"
    try:
        write_atomic(run.submission, content, flush=False)
    except OSError as failure:
        raise cannot_write(run.submission, failure) from None


def read(run: RunFolder) -> Submission | None:
    """Return the submission of a run; None if it was removed.

    Raises:
        OSError, msgspec.DecodeError: it cannot be read.
    """
    if not run.submission.exists():
        return None
    content = read_regular(run.submission)
    return msgspec.json.decode(content, type=Submission, dec_hook=decode_unit)


def mark(run: RunFolder, submission: Submission, state: JobState, reason: str) -> None:
    """Record the final state of a run.

    Raises:
        StoreError: as for `write`.
    """
    write(run, msgspec.structs.replace(submission, state=state, reason=reason))


def status_of(run: RunFolder) -> JobStatus | None:
    """Return the contents of status.json; None if it is missing or not readable."""
    try:
        return msgspec.json.decode(read_regular(run.status), type=JobStatus)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def owner(folder: Path) -> str:
    """Return the user who submitted the run of a folder."""
    uid = folder.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def unknown_job(submission: Submission, command: str, system: str) -> JobReport:
    """Return the state of a run without a job: its command may still run, if its server is slow."""
    submitted = datetime.datetime.fromisoformat(submission.submitted)
    age_s = (datetime.datetime.now(datetime.timezone.utc) - submitted).total_seconds()
    if age_s < WITHIN_S:
        reason = f"{command} was called {age_s:.0f} s ago and has not printed a job id"
        reason += f"; without a job it is lost in {WITHIN_S - age_s:.0f} s"
        return JobReport(state=JobState.UNKNOWN, reason=reason)
    reason = f"{system} never received it: {command} was not answered"
    return JobReport(state=JobState.LOST, reason=reason)
