"""Runs or log files -> diagnoses, using the runs' own files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from hpc_train.base.errors import LogParseError, StoreError, UnknownNameError
from hpc_train.base.files import is_folder
from hpc_train.base.node_names import node_number
from hpc_train.base.value import Value
from hpc_train.diagnosis.diagnose import diagnose_logs
from hpc_train.diagnosis.diagnosis import Diagnosis, FirstFailure, JobEnd
from hpc_train.diagnosis.signatures import Signature, catalogue
from hpc_train.diagnosis.waits import PATTERN, FlightDump, read_dump
from hpc_train.foreign.classify_inputs import classify
from hpc_train.logs.foreign_logs_by_run import files_of, refuse_empty
from hpc_train.logs.log_file import jobs_of, log_files, readable, unreadable_kind
from hpc_train.nccl.read_nccl_lines import Tally
from hpc_train.nccl.transport import transport_in
from hpc_train.nccl.transport_of_run import run_network
from hpc_train.runs.expected_runs import latest_attempts
from hpc_train.runs.nccl_transport import Transport
from hpc_train.runs.run import Run
from hpc_train.runs.run_states import runs_below
from hpc_train.runs.submission import JobState

_log = logging.getLogger(__name__)
OUT_OF_MEMORY = "cuda_oom"
# States of a run that count as a failure.
FAILED = (
    JobState.FAILED,
    JobState.TIMEOUT,
    JobState.NODE_FAIL,
    JobState.OUT_OF_MEMORY,
    JobState.PREEMPTED,
)


class Diagnosed(Value, frozen=True, kw_only=True):
    """One job, by the name of its run or of its logs; `unreadable` lists logs with errors."""

    name: str
    diagnosis: Diagnosis
    transport: Transport | None = None
    unreadable: tuple[str, ...] = ()


def diagnose(words: Sequence[str], root: Path, *, one_job: bool = False) -> tuple[Diagnosed, ...]:
    """Diagnose runs or the jobs of log files, each separately; with `one_job`, all files together.

    Raises:
        UnknownNameError: an argument is neither a run nor a file. StoreError: runs and other logs
        are mixed, or a folder has no runs. LogParseError: there is no log, or none that can be
        read.
    """
    logs, homes = classify(words, root)
    if logs and homes:
        raise StoreError("foreign logs and run folders are not one job", "diagnose each of them")
    if logs:
        return _foreign(logs, one_job=one_job)
    found = tuple(_own(run) for home in homes for run in _last_attempts(home))
    if not found:
        raise StoreError(f"{homes[0]}: no runs in this folder", "hpctrain status lists them")
    return found


def failures(ids: Sequence[str] = ()) -> tuple[Signature, ...]:
    """Return the known failures, or those with these ids, of the package and of the search path.

    Raises:
        UnknownNameError: there is no failure of this id.
    """
    known = {one.id: one for one in catalogue().signatures}
    for name in ids:
        if name not in known:
            raise UnknownNameError("failure", name, known, hint="see hpctrain diagnose --list")
    return tuple(known[name] for name in ids or known)


def _last_attempts(home: Path) -> Iterator[Run]:
    """Yield the runs below a folder, each in its last attempt."""
    runs = runs_below(home)
    last = {run.folder.run_id for _, run in latest_attempts(runs).values()}
    single = len(runs) == 1
    yield from (run for run in runs if single or not last or run.folder.run_id in last)


def _own(run: Run) -> Diagnosed:
    if run.newer:
        diagnosis = Diagnosis(outcome="unknown", why=run.problem)
        return Diagnosed(name=run.folder.run_id, diagnosis=diagnosis)
    tally = Tally()
    diagnosis, unreadable = _of_run(run, tally)
    return Diagnosed(
        name=run.folder.run_id,
        diagnosis=diagnosis,
        transport=transport_in(tally, run_network(run)),
        unreadable=unreadable,
    )


def _of_run(run: Run, tally: Tally | None = None) -> tuple[Diagnosis, tuple[str, ...]]:
    """Diagnose one run from its logs, its files and the state in the scheduler."""
    folder = run.folder
    files = log_files([folder.logs]) if is_folder(folder.logs) else []
    names = [path.relative_to(folder.path).as_posix() for path in files]
    dumps, damaged = _flight_dumps(run)
    found, unreadable = diagnose_logs(files, names, _end_of(run), tally, dumps)
    return _with_strategy(run, found), (*unreadable, *damaged)


def _flight_dumps(run: Run) -> tuple[tuple[FlightDump, ...], tuple[str, ...]]:
    """Return what torch's flight recorder wrote in the last start, and what could not be read."""
    folder, began = run.folder, run.status.started if run.status else 0.0
    dumps, damaged = list[FlightDump](), list[str]()
    for path in sorted(folder.logs.glob(PATTERN)) if is_folder(folder.logs) else ():
        name = path.relative_to(folder.path).as_posix()
        try:
            if path.stat().st_mtime >= began:
                dumps.append(read_dump(path, name))
        except LogParseError as error:
            damaged.append(error.message)
        except OSError as error:
            damaged.append(f"{name}: it cannot be read: {error.strerror}")
    for text in damaged:
        _log.warning("%s", text)
    return tuple(dumps), tuple(damaged)


def _with_strategy(run: Run, found: Diagnosis) -> Diagnosis:
    """Add what would fit to the advice on a GPU that ran out of memory."""
    root = found.root
    if root is None or run.manifest is None or root.id != OUT_OF_MEMORY:
        return found
    from hpc_train.diagnosis.fitting_strategy import strategy_that_fits

    sentence = strategy_that_fits(run.manifest, root)
    if not sentence:
        return found
    better = replace(root, advice=f"{root.advice} {sentence}")
    findings = tuple(better if one is root else one for one in found.findings)
    return replace(found, findings=findings)


def diagnosis_of(run: Run) -> Diagnosis:
    """Diagnose one run.

    Raises:
        LogParseError: none of its logs can be read.
    """
    return _of_run(run)[0]


def problem_of(run: Run) -> str:
    """Return why a run has no result: the recorded problem and, if it failed, the root cause."""
    if run.state not in FAILED:
        return run.problem
    try:
        root = diagnosis_of(run).root
    except LogParseError:
        return run.problem
    if root is None or root.id == "unknown_failure":
        return run.problem
    # Evidence from the scheduler is in the recorded problem already; it has no line.
    if run.problem and root.evidence and not root.evidence[0].line:
        return run.problem
    return f"{run.problem}; {root.title}" if run.problem else root.title


def _end_of(run: Run) -> JobEnd:
    status = run.status
    ended = status is not None and status.ended is not None and run.state.finished
    failure = status.failure if status is not None and ended else None
    first_failure = None
    if failure is not None:
        first_failure = FirstFailure(
            rank=failure.rank,
            host=failure.host,
            exit_code=failure.exit_code,
            time=_iso(failure.time),
            said_by="status.json",
        )
    return JobEnd(
        state=run.state.value,
        exit_code=status.exit_code if status is not None and ended else None,
        problem=run.problem,
        first_failure=first_failure,
        ranks=run.manifest.plan.topology.world_size if run.manifest else None,
        node=node_number(failure.host, status.nodes) if status and failure else None,
    )


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds).isoformat("T", "seconds")


def _foreign(logs: Sequence[Path], *, one_job: bool) -> tuple[Diagnosed, ...]:
    files = sorted(files_of(logs))
    refuse_empty(files)
    if one_job or len(files) == 1:
        name = readable(logs[0].name) if len(logs) == 1 else f"{len(files)} logs"
        return (_of_logs(name, files),)
    jobs = jobs_of(files)
    names = Counter(path.name for path in jobs)
    found, failed = [], list[LogParseError]()
    for path, several in jobs.items():
        name = path.name if names[path.name] == 1 and path.name else path.as_posix()
        try:
            found.append(_of_logs(readable(name), several))
        except LogParseError as error:
            failed.append(error)
            found.append(_unreadable(readable(name), error))
    if len(failed) == len(found):
        raise failed[0]
    return tuple(found)


def _of_logs(name: str, files: Sequence[Path]) -> Diagnosed:
    names = [readable(path.as_posix()) for path in files]
    tally = Tally()
    diagnosis, unreadable = diagnose_logs(files, names, JobEnd(), tally)
    if not diagnosis.findings and diagnosis.outcome == "unknown":
        kinds = [unreadable_kind(path) for path in files]
        if kinds and all(kinds):
            raise LogParseError(f"{names[0]}: {kinds[0]}")
    return Diagnosed(
        name=name, diagnosis=diagnosis, transport=transport_in(tally), unreadable=unreadable
    )


def _unreadable(name: str, error: LogParseError) -> Diagnosed:
    _log.warning("%s", error.message)
    diagnosis = Diagnosis(outcome="unknown", why=error.message)
    return Diagnosed(name=name, diagnosis=diagnosis, unreadable=(error.message,))
