"""Runs or log files -> diagnoses, using the runs' own files; the causes are kept."""

import hashlib
import logging
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from hpc_train import __version__
from hpc_train.base.errors import LogParseError, StoreError, UnknownNameError
from hpc_train.base.files import files_in, is_folder
from hpc_train.base.node_names import node_number
from hpc_train.base.plain_text import plain
from hpc_train.base.values import Value
from hpc_train.diagnosis.diagnose import diagnose_logs
from hpc_train.diagnosis.diagnosis import Diagnosis, FirstFailure, JobEnd
from hpc_train.diagnosis.signatures import Signature, catalogue
from hpc_train.diagnosis.waits import PATTERN, FlightDump, read_dump
from hpc_train.foreign.classify_inputs import classify
from hpc_train.jobs.job import RESUBMIT
from hpc_train.logs.collect import files_of, refuse_empty
from hpc_train.logs.log_file import jobs_of, log_files, readable, unreadable_kind
from hpc_train.nccl.transport import Tally, run_network, transport_in
from hpc_train.runs.conditions import Transport
from hpc_train.runs.expected_runs import latest_attempts
from hpc_train.runs.json_files import default_results, read_cache, to_json, write_cache
from hpc_train.runs.run import JobState, Run
from hpc_train.runs.run_states import runs_below
from hpc_train.runs.run_table import explained

_log = logging.getLogger(__name__)
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
    found = list[Diagnosed]()
    for runs in map(runs_below, homes):
        # Each run in its last attempt.
        last = {run.folder.run_id for run in latest_attempts(runs).values()}
        single = len(runs) == 1
        found += [_own(one) for one in runs if single or not last or one.folder.run_id in last]
    if not found:
        raise StoreError(f"{homes[0]}: no runs in this folder", "hpctrain status lists them")
    return tuple(found)


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


def _own(run: Run) -> Diagnosed:
    name = run.folder.run_id
    if run.newer:
        return Diagnosed(name=name, diagnosis=Diagnosis(outcome="unknown", why=run.problem))
    tally = Tally()
    diagnosis, unreadable = _of_run(run, tally)
    transport = transport_in(tally, run_network(run))
    return Diagnosed(name=name, diagnosis=diagnosis, transport=transport, unreadable=unreadable)


def _of_run(run: Run, tally: Tally | None = None) -> tuple[Diagnosis, tuple[str, ...]]:
    """Diagnose one run from its logs, its files and the state in the scheduler."""
    folder, began = run.folder, run.status.started if run.status else 0.0
    there = is_folder(folder.logs)
    files = log_files([folder.logs]) if there else []
    names = [path.relative_to(folder.path).as_posix() for path in files]
    dumps, damaged = list[FlightDump](), list[str]()
    # What torch's flight recorder wrote in the last start.
    for path in sorted(folder.logs.glob(PATTERN)) if there else ():
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
    found, unreadable = diagnose_logs(files, names, _end_of(run), tally, dumps)
    return found, (*unreadable, *damaged)


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
        at = None if failure.time is None else datetime.fromtimestamp(failure.time)
        first_failure = FirstFailure(
            rank=failure.rank,
            host=failure.host,
            exit_code=failure.exit_code,
            time=at.isoformat("T", "seconds") if at else None,
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


def _foreign(logs: Sequence[Path], *, one_job: bool) -> tuple[Diagnosed, ...]:
    files = sorted(files_of(logs))
    refuse_empty(files)
    if one_job or len(files) == 1:
        name = readable(logs[0].name) if len(logs) == 1 else f"{len(files)} logs"
        return (_of_logs(name, files),)
    jobs = jobs_of(files)
    names = Counter(path.name for path in jobs)
    found, failed = list[Diagnosed](), list[LogParseError]()
    for path, several in jobs.items():
        name = readable(path.name if names[path.name] == 1 and path.name else path.as_posix())
        try:
            found.append(_of_logs(name, several))
        except LogParseError as error:
            _log.warning("%s", error.message)
            failed.append(error)
            why = Diagnosis(outcome="unknown", why=error.message)
            found.append(Diagnosed(name=name, diagnosis=why, unreadable=(error.message,)))
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


FILE = "diagnosis.json"
LIMIT_S = 2.0
# Bytes of logs; what opening a file costs, in bytes that are read meanwhile.
_LARGEST, _OPENED = 64 << 20, 6 << 10
_LONGEST = 160
_MOST = 5
# The other states without a result state their reason, and no program failed.
_DIAGNOSED = (JobState.FAILED, JobState.OUT_OF_MEMORY, JobState.TIMEOUT)
# They repeat the exit code of the recorded problem; the end of the log says more.
_EXIT_CODE_ONLY = ("unknown_failure", "torchrun_child_failed_rank", "torchrun_process_failed")


class Cause(Value, frozen=True, kw_only=True):
    """Why a run failed, in one line, and on which rank, if that is known.

    `stamp` is a digest of the files that it was read from.
    """

    stamp: str
    text: str = ""
    rank: int | None = None


_decode = msgspec.json.Decoder(Cause).decode


def causes(runs: Iterable[Run], limit_s: float = LIMIT_S) -> dict[str, str]:
    """Return the causes of failed runs by run id, without those that take too long to find."""
    until = time.monotonic() + limit_s
    failed = (run for run in runs if run.state in _DIAGNOSED and run.manifest is not None)
    found = ((run, _cause(run, until)) for run in failed)
    return {run.folder.run_id: one.text for run, one in found if one is not None and one.text}


def explain(runs: Sequence[Run], home: Path, say: Callable[[str], None]) -> None:
    """Say why runs failed, before they are submitted again."""
    found = causes(runs)
    shown = [run for run in runs if run.folder.run_id in found][:_MOST]
    for run in shown:
        say(f"{run.folder.run_id} {run.state.value}: {explained(run, found)}")
    if len(found) > len(shown):
        say(f"and {len(found) - len(shown)} more runs")
    if found:
        say(next_step(runs, home))


def next_step(runs: Iterable[Run], home: Path) -> str:
    """Return the command that explains the failures of these runs; empty if none failed."""
    failed = [run.folder.path for run in runs if run.state in _DIAGNOSED]
    if not failed:
        return ""
    folder = failed[0] if len(failed) == 1 else home
    usual = default_results() in (folder.parent, folder.parent.parent)
    return f"next: hpctrain diagnose {folder.name if usual else shlex.quote(str(folder))}"


def failed_rank(run: Run) -> int | None:
    """Return the rank that failed first, from the status file or the diagnosis."""
    if run.state not in _DIAGNOSED:
        return None
    failure = run.status.failure if run.status is not None else None
    if failure is not None:
        return failure.rank
    kept = _cause(run, time.monotonic() + LIMIT_S) if run.manifest is not None else None
    return kept.rank if kept is not None else None


def _cause(run: Run, until: float) -> Cause | None:
    stamp, size = _stamp(run)
    kept = None
    with suppress(LogParseError):
        kept = read_cache(run.folder.path / FILE, _decode)
    if kept is not None and kept.stamp == stamp:
        return kept
    if size > _LARGEST or time.monotonic() > until:
        return None
    found = Cause(stamp=stamp)
    with suppress(LogParseError):
        diagnosis = diagnosis_of(run)
        root, first = diagnosis.root, diagnosis.first_failure
        rank = first.rank if first is not None else None
        if rank is None and root is not None and root.evidence:
            rank = root.evidence[0].rank
        text = " ".join(plain(_first_line(run, diagnosis)).split())
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        found = Cause(stamp=stamp, text=text, rank=rank)
    write_cache(run.folder.path / FILE, to_json(found))
    return found


def _first_line(run: Run, diagnosis: Diagnosis) -> str:
    """Return the root cause or, if it is unknown, the last line of the rank that failed first."""
    root = diagnosis.root
    if root is not None and root.id not in _EXIT_CODE_ONLY:
        # Evidence of the scheduler or the job script is in the recorded problem already.
        return root.title if root.evidence and root.evidence[0].line else ""
    # The last line of ranks that saved and asked for another start is no cause.
    failure = run.status.failure if run.status is not None else None
    if failure is not None and failure.exit_code == RESUBMIT:
        return ""
    last = next((one for one in reversed(diagnosis.last_lines) if one.text.strip()), None)
    return f"last line of {last.source}: {last.text.strip()}" if last else ""


def _stamp(run: Run) -> tuple[str, int]:
    """Return a digest of what a diagnosis depends on, and what reading the logs costs [bytes]."""
    files = []
    for path in files_in(run.folder.logs):
        with suppress(OSError):
            found = path.stat()
            files.append((path.name, found.st_size, found.st_mtime_ns))
    facts = (__version__, run.state.value, run.problem, str(run.status), *map(str, sorted(files)))
    digest = hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()
    return digest, sum(size + _OPENED for _, size, _ in files)
