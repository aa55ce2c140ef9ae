"""Log files of one job -> Diagnosis; foreign logs -> the ends of their jobs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from hpc_train.errors import LogParseError
from hpc_train.model.diagnosis import Attempt, Diagnosis, Evidence, FirstFailure, JobEnd, LogFinding
from hpc_train.model.transport import Transport
from hpc_train.records.diagnosis.attempts import Observed, attempts_of
from hpc_train.records.diagnosis.conclude import conclude
from hpc_train.records.diagnosis.flight_recorder import FlightDump
from hpc_train.records.diagnosis.scan_logs import last_lines, scan
from hpc_train.records.find_logs import rank_of
from hpc_train.records.nccl.read_transport import transport_in
from hpc_train.records.nccl.tally import Tally
from hpc_train.records.read_log import Log

UNKNOWN = "unknown_failure"
# Root causes that report how a rank ended, but not what it did: the end of its log shows that.
_WORDLESS = frozenset(
    {
        "exit_killed",
        "slurm_time_limit",
        "torchrun_child_failed_rank",
        "torchrun_process_failed",
    }
)


def diagnose_logs(
    files: Sequence[Path],
    names: Sequence[str],
    end: JobEnd,
    tally: Tally | None = None,
    dumps: Sequence[FlightDump] = (),
) -> tuple[Diagnosis, tuple[str, ...]]:
    """Return the diagnosis, and a sentence for each file that could not be read.

    `names` are the file names in evidence. Lines of NCCL are counted in `tally` in the same pass.
    `dumps` are what torch's flight recorder wrote in the last attempt.

    Raises:
        LogParseError: none of the files can be read.
    """
    observed = scan(files, names, tally)
    *earlier, last = attempts_of(observed)
    attempts = tuple(_attempt(part, conclude(part, JobEnd())) for part in earlier)
    last = replace(last, dumps=tuple(dumps))
    found = replace(conclude(last, end), earlier=attempts, line=last.first_line)
    if found.outcome == "failed" and found.root is None:
        words = _last_lines(files, names, found.first_failure, end.node)
        unknown = _unknown(end, words)
        found = replace(found, findings=(unknown, *found.findings), last_lines=words)
    elif found.root is not None and found.root.id in _WORDLESS:
        own = [pair for pair in zip(files, names, strict=True) if _is_of(pair[0], found)]
        words = _last_lines([path for path, _ in own], [name for _, name in own])
        found = replace(found, last_lines=words)
    return found, observed.failed


def _attempt(observed: Observed, found: Diagnosis) -> Attempt:
    return Attempt(
        outcome=found.outcome,
        why=found.why,
        line=observed.first_line,
        id=found.root.id if found.root else None,
        title=found.root.title if found.root else None,
    )


def _is_of(path: Path, found: Diagnosis) -> bool:
    """Whether a log is that of the rank that failed first, or of rank 0 if all were stopped."""
    rank = rank_of(path)
    return rank is not None and rank == (found.first_failure.rank if found.first_failure else 0)


def _unknown(end: JobEnd, words: tuple[Evidence, ...]) -> LogFinding:
    result = f"It failed ({end.problem})" if end.problem else "It failed"
    return LogFinding(
        id=UNKNOWN,
        group="unknown",
        severity="fatal",
        role="root",
        title=f"{result}, and no line that is known says why",
        message="the catalogue of failures has none of the lines in these logs",
        advice="read the last lines of the rank that failed first, below; run once more with "
        "PYTHONFAULTHANDLER=1, TORCH_SHOW_CPP_STACKTRACES=1 and NCCL_DEBUG=INFO",
        evidence=words[-1:],
    )


def _last_lines(
    files: Sequence[Path],
    names: Sequence[str],
    first_failure: FirstFailure | None = None,
    node: int | None = None,
) -> tuple[Evidence, ...]:
    """Return the end of the log of the rank that failed first, else of the first log with text.

    Where a program starts the ranks itself, the log of its node has their lines.
    """
    rank = first_failure.rank if first_failure else None

    def is_other(pair: tuple[Path, str]) -> bool:
        return rank_of(pair[0]) != rank or (rank is None and pair[0].name != f"node-{node}.out")

    order = sorted(zip(files, names, strict=True), key=is_other)
    for path, name in order:
        words = last_lines(path, name)
        if words:
            return words
    return ()


class LogEnd(NamedTuple):
    """Transport of one run from its logs and, if the run failed, the reason."""

    transport: Transport | None
    failure: str = ""


def log_ends(
    runs: Mapping[str, Sequence[Log]], unreadable: Container[str] = ()
) -> dict[str, LogEnd]:
    """Return the end of each run; `unreadable` logs are skipped."""
    return {
        run: _end([log for log in logs if log.source not in unreadable])
        for run, logs in runs.items()
    }


def _end(logs: Sequence[Log]) -> LogEnd:
    tally = Tally()
    names = [log.source for log in logs]
    try:
        found, _ = diagnose_logs([log.path for log in logs], names, JobEnd(), tally)
    except LogParseError:
        return LogEnd(transport_in(tally))
    return LogEnd(transport_in(tally), _failure(found) if found.outcome == "failed" else "")


def _failure(found: Diagnosis) -> str:
    if found.root is None:
        return found.why
    first = found.root.evidence[:1]
    where = f" ({first[0].source}:{first[0].line})" if first and first[0].line else ""
    return f"{found.root.title}{where}"
