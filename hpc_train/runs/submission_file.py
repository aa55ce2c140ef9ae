"""Writing submission.json at submission and when the end is known; status.json, and whose it is."""

from __future__ import annotations

import pwd
from pathlib import Path

import msgspec

from hpc_train.base.files import read_regular, write_atomic
from hpc_train.base.value import decode_unit, encode_unit
from hpc_train.runs.json_files import cannot_write
from hpc_train.runs.run import JobState, JobStatus, RunFolder, Submission


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
