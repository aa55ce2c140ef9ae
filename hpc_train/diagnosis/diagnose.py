"""Log files of one job -> Diagnosis; foreign logs -> the ends of their jobs."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from hpc_train.base.errors import LogParseError
from hpc_train.base.values import LogSeverity, Value
from hpc_train.diagnosis.diagnosis import (
    Attempt,
    DiagnosedOutcome,
    Diagnosis,
    Evidence,
    FirstFailure,
    JobEnd,
    LogFinding,
    Role,
)
from hpc_train.diagnosis.root_cause import (
    AGAIN,
    CAUSE,
    ENDED,
    EXIT,
    RAISED_AGAIN,
    Ending,
    EndingKind,
    Observed,
    attempts_of,
    cause_level,
    choose_root,
    first_of,
    specific,
    with_times,
)
from hpc_train.diagnosis.scan_logs import last_lines, scan
from hpc_train.diagnosis.signatures import Explanation, Sighting, catalogue, concluded, explain
from hpc_train.diagnosis.waits import FlightDump, explain_dumps, explain_hang
from hpc_train.logs.log_file import rank_of
from hpc_train.logs.read_log import Log
from hpc_train.nccl.read_nccl_lines import Tally
from hpc_train.nccl.transport import transport_in
from hpc_train.runs.conditions import Transport

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
    return _diagnosis(observed, files, names, end, dumps), tuple(observed.failed)


def _diagnosis(
    observed: Observed,
    files: Sequence[Path],
    names: Sequence[str],
    end: JobEnd,
    dumps: Sequence[FlightDump] = (),
) -> Diagnosis:
    *before, last = attempts_of(observed)
    attempts = []
    for part in before:
        one = conclude(part, JobEnd())
        told = {"id": one.root.id, "title": one.root.title} if one.root else {}
        attempts.append(Attempt(outcome=one.outcome, why=one.why, line=part.first_line, **told))
    last.dumps = dumps
    found = replace(conclude(last, end), earlier=tuple(attempts), line=last.first_line)
    first = found.first_failure
    if found.outcome == "failed" and found.root is None:
        words = _last_lines(files, names, first, end.node)
        result = f"It failed ({end.problem})" if end.problem else "It failed"
        unknown = _concluded(UNKNOWN, "unknown", words[-1:], result=result)
        return replace(found, findings=(unknown, *found.findings), last_lines=words)
    if found.root is not None and found.root.id in _WORDLESS:
        # The log of the rank that failed first, or of rank 0 if all were stopped.
        rank = first.rank if first else 0
        own = [pair for pair in zip(files, names, strict=True) if rank == rank_of(pair[0])]
        own = own if rank is not None else []
        words = _last_lines([path for path, _ in own], [name for _, name in own])
        return replace(found, last_lines=words)
    return found


def _concluded(
    name: str, group: str, evidence: tuple[Evidence, ...], **stated: object
) -> LogFinding:
    """Return a root cause that no single line states."""
    why = concluded(name, **stated)
    return LogFinding(
        id=name,
        group=group,
        severity="fatal",
        role="root",
        title=why.title,
        message=why.cause,
        advice=why.advice,
        evidence=evidence,
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
    """Transport of one run from its logs and, if the run failed, the reason.

    `starts` are the lines of each source by which a job may begin.
    """

    transport: Transport | None
    failure: str = ""
    starts: Mapping[str, Sequence[int]] = MappingProxyType({})


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
    names, files = [log.source for log in logs], [log.path for log in logs]
    try:
        observed = scan(files, names, tally)
    except LogParseError:
        return LogEnd(transport_in(tally))
    found = _diagnosis(observed, files, names, JobEnd())
    starts: dict[str, list[int]] = defaultdict(list)
    seen: set[tuple[int, str]] = set()
    for file, start in observed.starts:
        if start.kind != AGAIN and (start.sure or (file, start.kind) in seen):
            starts[names[file]].append(start.line)
        seen.add((file, start.kind))
    failure, root = found.why, found.root
    if root is not None:
        first = root.evidence[0] if root.evidence else None
        where = f" ({first.source}:{first.line})" if first and first.line else ""
        failure = f"{root.title}{where}"
    return LogEnd(transport_in(tally), failure if found.outcome == "failed" else "", starts)


_STATES = {
    "TIMEOUT": "slurm_time_limit",
    "OUT_OF_MEMORY": "slurm_host_oom",
    "NODE_FAIL": "slurm_node_failure",
    "PREEMPTED": "slurm_preempted",
}
# Maximum number of lines shown for one finding.
_SHOWN = 5
_ROLES: dict[Role, int] = {"root": 0, "consequence": 1, "other": 2}
_SEVERITIES: dict[LogSeverity, int] = {"fatal": 0, "warning": 1, "info": 2, "benign": 3}


def conclude(observed: Observed, end: JobEnd) -> Diagnosis:
    """Return the diagnosis of one job; deterministic."""
    seen = [*specific(with_times(observed.seen)), *_by_state(observed, end)]
    verdict = decide(observed.endings, observed.sources, seen, end)
    first_failure = end.first_failure or first_of(seen)
    root = None
    if verdict.outcome != "success" and not _only_cancelled(seen, end):
        root = choose_root([one for one in seen if one.fatal], first_failure)
    findings = [*_findings(seen, root, verdict.outcome, observed.counts)]
    if root is None and verdict.failure is not None:
        findings.append(_missed_target(verdict.failure, verdict.source))
    if root is not None and root.of.id in ("nccl_watchdog_timeout", "slurm_time_limit"):
        findings = [
            _of_ranks(one, observed, _ranks(seen, end)) if one.role == "root" else one
            for one in findings
        ]
    return Diagnosis(
        outcome=verdict.outcome,
        why=verdict.why,
        findings=tuple(
            sorted(findings, key=lambda one: (_ROLES[one.role], _SEVERITIES[one.severity]))
        ),
        first_failure=first_failure if verdict.outcome != "success" else None,
    )


def _by_state(observed: Observed, end: JobEnd) -> Iterator[Sighting]:
    """Yield the end that the scheduler reports, if no log reports it."""
    name = _STATES.get(end.state)
    if name is None or any(one.of.id == name for one in observed.seen):
        return
    text = end.problem or f"the state of the run is {end.state}"
    yield Sighting(
        of=catalogue().by_id[name],
        source="the scheduler",
        line=0,
        text=text,
        groups=(("what", "The run"), ("job", "")),
        file=len(observed.sources),
    )


def _findings(
    seen: Iterable[Sighting],
    root: Sighting | None,
    outcome: DiagnosedOutcome,
    counts: Mapping[str, int],
) -> Iterator[LogFinding]:
    by_id: dict[str, list[Sighting]] = defaultdict(list)
    for one in sorted(seen, key=lambda one: one.survived):
        by_id[one.of.id].append(one)
    for several in by_id.values():
        role = _role(several[0], root)
        # The title comes from the line of the root cause, else from that of the first failed rank.
        first = next((one for one in several if one.is_first), several[0])
        chief = root if role == "root" and root is not None else first
        signature = chief.of
        explanation = explain(signature, chief)
        of_ranks: dict[tuple[int | None, str], Sighting] = {}
        for one in (chief, *several):
            if one.exit_code == chief.exit_code:
                of_ranks.setdefault((one.rank, one.source), one)
        yield LogFinding(
            id=signature.id,
            group=signature.group,
            severity=_severity(chief, role, outcome),
            role=role,
            title=explanation.title,
            message=explanation.cause,
            advice=explanation.advice,
            evidence=tuple(map(_evidence, [*of_ranks.values()][:_SHOWN])),
            count=max(len(several), counts.get(signature.id, 0)),
        )


def _severity(chief: Sighting, role: Role, outcome: DiagnosedOutcome) -> LogSeverity:
    """Return the severity in this job: survived errors and errors at teardown are benign."""
    signature = chief.of
    if chief.survived and signature.severity == "fatal":
        return "benign" if outcome == "success" else "info"
    if outcome == "success" and (signature.severity == "fatal" or role == "consequence"):
        return "benign"
    # A job that was stopped from outside did not fail.
    stopped = outcome == "unknown" and signature.severity == "fatal"
    return "info" if stopped else signature.severity


def _role(first: Sighting, root: Sighting | None) -> Role:
    if root is not None and first.of.id == root.of.id:
        return "root"
    signature = first.of
    if signature.severity == "benign":
        return "other"
    if signature.role == "consequence":
        return "consequence"
    if root is None or not first.fatal:
        return "other"
    later = first.file != root.file or first.place > root.place
    if first.when and root.when and first.when != root.when:
        later = first.when > root.when
    follows = cause_level(first) > cause_level(root) or first.tells_end or later
    return "consequence" if follows else "other"


def _evidence(seen: Sighting) -> Evidence:
    sighting = seen
    groups = dict(sighting.groups)
    frame = {"file", "line"} <= groups.keys()
    return Evidence(
        source=sighting.source,
        line=sighting.line,
        text=sighting.text,
        rank=sighting.rank,
        node=sighting.node,
        time=sighting.time,
        raised_at=f"{groups['file']}:{groups['line']}" if frame else None,
        called_from=groups.get("caller"),
    )


def _told(finding: LogFinding, why: Explanation, more: tuple[Evidence, ...] = ()) -> LogFinding:
    """Return the root cause with what many lines say of it."""
    evidence = (*finding.evidence, *more)
    return replace(
        finding, title=why.title, message=why.cause, advice=why.advice, evidence=evidence
    )


def _of_ranks(finding: LogFinding, observed: Observed, ranks: int | None) -> LogFinding:
    """Return the end of a job that hung, with what its ranks waited for."""
    if finding.id == "slurm_time_limit":
        began, completed = observed.inits
        # It never got through NCCL's setup.
        hung = began and not completed
        return _told(finding, concluded("hang_in_setup", began=began)) if hung else finding
    hang, evidence = explain_dumps(observed.dumps, ranks)
    hang = hang or explain_hang(observed.waits, observed.progress, ranks)
    return _told(finding, hang, evidence) if hang else finding


def _ranks(seen: Sequence[Sighting], end: JobEnd) -> int | None:
    """Return the number of ranks of the job, or a lower limit."""
    if end.ranks is not None:
        return end.ranks
    known = [one.rank for one in seen if one.rank is not None]
    return max(known) + 1 if known else None


# Groups of errors that a program may print at teardown, after its work.
_TEARDOWN: frozenset[str] = frozenset({"slurm", "mpi", "torchrun", "c10d", "nccl"})
# Kinds of evidence that work is done, strongest first, each with the mildest failure overriding it.
_MILDEST: Mapping[EndingKind, int] = {
    "success": CAUSE,
    "work": CAUSE,
    "bench": RAISED_AGAIN,
    "part": EXIT,
}
_DOCUMENTS = (".md", ".rst")

Endings = Sequence[tuple[int, Ending]]


class JobOutcome(Value, frozen=True, kw_only=True):
    """How the job ended, and the evidence; `failure` is a failure that the program reports."""

    outcome: DiagnosedOutcome
    why: str
    failure: Ending | None = None
    source: str = ""


def decide(
    endings: Endings, sources: Sequence[str], seen: Sequence[Sighting], end: JobEnd
) -> JobOutcome:
    """Use evidence of success first; errors count without such evidence, or after the work."""
    if end.exit_code == 0 or end.state == "COMPLETED":
        return JobOutcome(outcome="success", why=end.problem or "its script ended with exit code 0")
    if sources and all(source.endswith(_DOCUMENTS) for source in sources):
        return JobOutcome(
            outcome="unknown", why="a document that quotes logs is not the log of a job"
        )
    last = _last(endings)
    if _only_cancelled(seen, end):
        return JobOutcome(outcome="unknown", why=end.problem or "cancelled")
    # A message of the script after the program does not override that of the program.
    result = [item for item in last if item[1].kind in ("success", "failure")][-1:]
    if any(item[1].kind == "failure" for item in result):
        file, ending = result[-1]
        why = _quoted(result[-1], sources)
        return JobOutcome(outcome="failed", why=why, failure=ending, source=sources[file])
    if last:
        return _after_work(last, sources, seen, end)
    return _without_ending(seen, end)


def _only_cancelled(seen: Sequence[Sighting], end: JobEnd) -> bool:
    """Whether a job was cancelled before anything failed; what a signal ends did not fail."""
    causes = (one for one in seen if one.fatal and cause_level(one) == CAUSE)
    return end.state == "CANCELLED" and next(causes, None) is None


def _last(endings: Endings) -> list[tuple[int, Ending]]:
    """Drop, for each file, the endings before a restart of the work."""
    kept: list[tuple[int, Ending]] = []
    for file, ending in endings:
        if ending.kind == "restart":
            kept = [item for item in kept if item[0] != file]
        else:
            kept.append((file, ending))
    return kept


def _after_work(
    done: Endings, sources: Sequence[str], seen: Sequence[Sighting], end: JobEnd
) -> JobOutcome:
    kinds = [item[1].kind for item in done]
    best = next(kind for kind in _MILDEST if kind in kinds)
    proof = [item for item in done if item[1].kind == best][-1]
    evidence = _quoted(proof, sources)
    mildest, done_in, at = _MILDEST[best], proof[0], proof[1].line
    torn = _TEARDOWN if best in ("success", "work") else frozenset[str]()
    later = any(
        one.fatal
        and cause_level(one) <= mildest
        and one.of.group not in torn
        and not (one.file == done_in and one.line < at)
        for one in seen
    )
    if later and (best != "success" or end.exit_code is not None):
        return JobOutcome(
            outcome="failed", why=f"the work was done ({evidence}), but what came after failed"
        )
    code = f"; exit code {end.exit_code} came after" if end.exit_code else ""
    return JobOutcome(outcome="success", why=evidence + code)


def _quoted(item: tuple[int, Ending], sources: Sequence[str]) -> str:
    file, ending = item
    text = textwrap.shorten(ending.text, 120, placeholder=" …")
    return f"{sources[file]}:{ending.line} says: {text}"


def _without_ending(seen: Sequence[Sighting], end: JobEnd) -> JobOutcome:
    fatal = [one for one in seen if one.fatal]
    if any(cause_level(one) < ENDED for one in fatal):
        return JobOutcome(outcome="failed", why="no line shows that the work was done")
    if end.exit_code or end.state in ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"):
        return JobOutcome(outcome="failed", why=end.problem or f"the run is {end.state}")
    if fatal:
        return JobOutcome(outcome="unknown", why="it was ended before its work was done")
    if any(one.survived for one in seen):
        return JobOutcome(
            outcome="unknown",
            why="the work went on after the errors, and no line shows that it was done",
        )
    return JobOutcome(
        outcome="unknown",
        why="the logs show neither a failure nor that the work was done",
    )


def _missed_target(ending: Ending, source: str) -> LogFinding:
    """Return the finding of an ending of the kind `failure`."""
    place = (Evidence(source=source, line=ending.line, text=ending.text),)
    if "Out of bounds" in ending.text:
        return _concluded("collective_wrong_result", "nccl", place)
    return _concluded("mlperf_aborted", "python", place)
