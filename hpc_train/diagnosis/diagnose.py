"""Log files of one job -> Diagnosis; foreign logs -> the ends of their jobs."""

import textwrap
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from hpc_train.base.errors import LogParseError
from hpc_train.base.values import LogSeverity
from hpc_train.diagnosis.diagnosis import (
    Attempt,
    DiagnosedOutcome,
    Diagnosis,
    Evidence,
    JobEnd,
    LogFinding,
    Role,
)
from hpc_train.diagnosis.scan_logs import (
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
    last_lines,
    scan,
    specific,
    with_times,
)
from hpc_train.diagnosis.signatures import Explanation, Sighting, catalogue, concluded, explain
from hpc_train.diagnosis.waits import FlightDump, explain_dumps, explain_hang
from hpc_train.logs.log_file import rank_of
from hpc_train.logs.read_log import Log
from hpc_train.nccl.transport import Tally, transport_in
from hpc_train.runs.conditions import Transport

# Root causes that report how a rank ended, but not what it did: the end of its log shows that.
_WORDLESS = frozenset({
    "exit_killed", "slurm_time_limit", "torchrun_child_failed_rank", "torchrun_process_failed",
})  # fmt: skip


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
    return _diagnosis(observed, files, end, dumps), tuple(observed.failed)


def _diagnosis(
    observed: Observed,
    files: Sequence[Path],
    end: JobEnd,
    dumps: Sequence[FlightDump] = (),
) -> Diagnosis:
    *before, last = attempts_of(observed)
    attempts = []
    for part in before:
        one = _conclude(part, JobEnd())
        told = {"id": one.root.id, "title": one.root.title} if one.root else {}
        attempts.append(Attempt(outcome=one.outcome, why=one.why, line=part.first_line, **told))
    last.dumps = dumps
    found = replace(_conclude(last, end), earlier=tuple(attempts), line=last.first_line)
    rank = found.first_failure.rank if found.first_failure else None
    named = [*zip(files, observed.sources, strict=True)]
    if found.outcome == "failed" and found.root is None:
        # The end of the log of the rank that failed first, else of the first log with text. Where
        # a program starts the ranks itself, the log of its node has their lines.
        node = f"node-{end.node}.out"
        named.sort(
            key=lambda one: rank_of(one[0]) != rank or (rank is None and one[0].name != node)
        )
        words = next(filter(None, (last_lines(*one) for one in named)), ())
        result = f"It failed ({end.problem})" if end.problem else "It failed"
        unknown = _concluded("unknown_failure", "unknown", words[-1:], result=result)
        return replace(found, findings=(unknown, *found.findings), last_lines=words)
    if found.root is not None and found.root.id in _WORDLESS:
        # The log of the rank that failed first, or of rank 0 if all were stopped.
        rank = rank if found.first_failure else 0
        own = (one for one in named if rank is not None and rank == rank_of(one[0]))
        words = next(filter(None, (last_lines(*one) for one in own)), ())
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
    found = _diagnosis(observed, files, JobEnd())
    starts: dict[str, list[int]] = defaultdict(list)
    seen: set[tuple[int, str]] = set()
    for start in observed.starts:
        kind = start.file, start.kind
        if start.kind != AGAIN and (start.sure or kind in seen):
            starts[names[start.file]].append(start.line)
        seen.add(kind)
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


def _conclude(observed: Observed, end: JobEnd) -> Diagnosis:
    """Return the diagnosis of one attempt: its outcome, its root cause, what followed from it."""
    seen = specific(with_times(observed.seen))
    state = _STATES.get(end.state)
    if state is not None and all(one.of.id != state for one in observed.seen):
        # The end that the scheduler reports, if no log reports it.
        stated = Sighting(
            of=catalogue().by_id[state],
            source="the scheduler",
            line=0,
            text=end.problem or f"the state of the run is {end.state}",
            groups=(("what", "The run"), ("job", "")),
            file=len(observed.sources),
        )
        seen.append(stated)
    outcome, why, failure = _decide(observed, seen, end)
    first_failure = end.first_failure or first_of(seen)
    root = None
    if outcome != "success" and not _only_cancelled(seen, end):
        root = choose_root([one for one in seen if one.fatal], first_failure)
    by_id: dict[str, list[Sighting]] = defaultdict(list)
    for one in sorted(seen, key=lambda one: one.survived):
        by_id[one.of.id].append(one)
    findings = []
    for several in by_id.values():
        role = _role(several[0], root)
        found = _finding(several, role, root, outcome, observed.counts[several[0].of.id])
        if role == "root":
            found = _of_ranks(found, observed, _ranks(seen, end))
        findings.append(found)
    if root is None and failure is not None:
        place = Evidence(
            source=observed.sources[failure.file], line=failure.line, text=failure.text
        )
        wrong = "Out of bounds" in failure.text
        kind = ("collective_wrong_result", "nccl") if wrong else ("mlperf_aborted", "python")
        findings.append(_concluded(*kind, (place,)))
    findings.sort(key=lambda one: (_ROLES[one.role], _SEVERITIES[one.severity]))
    return Diagnosis(
        outcome=outcome,
        why=why,
        findings=tuple(findings),
        first_failure=first_failure if outcome != "success" else None,
    )


def _finding(
    several: Sequence[Sighting],
    role: Role,
    root: Sighting | None,
    outcome: DiagnosedOutcome,
    count: int,
) -> LogFinding:
    """Return the finding of the sightings of one signature."""
    # The title comes from the line of the root cause, else from that of the first failed rank.
    first = next((one for one in several if one.is_first), several[0])
    chief = root if role == "root" and root is not None else first
    why = explain(chief.of, chief)
    of_ranks: dict[tuple[int | None, str], Sighting] = {}
    for one in (chief, *several):
        if one.exit_code == chief.exit_code:
            of_ranks.setdefault((one.rank, one.source), one)
    return LogFinding(
        id=chief.of.id,
        group=chief.of.group,
        severity=_severity(chief, role, outcome),
        role=role,
        title=why.title,
        message=why.cause,
        advice=why.advice,
        evidence=tuple(map(_evidence, [*of_ranks.values()][:_SHOWN])),
        count=max(len(several), count),
    )


def _severity(chief: Sighting, role: Role, outcome: DiagnosedOutcome) -> LogSeverity:
    """Return the severity in this job: survived errors and errors at teardown are benign."""
    severity = chief.of.severity
    if outcome == "success" and (severity == "fatal" or role == "consequence"):
        return "benign"
    # A job that was stopped from outside did not fail.
    slight = severity == "fatal" and (chief.survived or outcome == "unknown")
    return "info" if slight else severity


def _role(first: Sighting, root: Sighting | None) -> Role:
    if root is not None and first.of.id == root.of.id:
        return "root"
    if first.of.severity == "benign":
        return "other"
    if first.of.role == "consequence":
        return "consequence"
    if root is None or not first.fatal:
        return "other"
    later = first.file != root.file or first.place > root.place
    if first.when and root.when and first.when != root.when:
        later = first.when > root.when
    follows = cause_level(first) > cause_level(root) or first.tells_end or later
    return "consequence" if follows else "other"


def _evidence(seen: Sighting) -> Evidence:
    groups = dict(seen.groups)
    frame = {"file", "line"} <= groups.keys()
    return Evidence(
        source=seen.source,
        line=seen.line,
        text=seen.text,
        rank=seen.rank,
        node=seen.node,
        time=seen.time,
        raised_at=f"{groups['file']}:{groups['line']}" if frame else None,
        called_from=groups.get("caller"),
    )


def _of_ranks(finding: LogFinding, observed: Observed, ranks: int | None) -> LogFinding:
    """Return the end of a job that hung, with what its ranks waited for."""
    why: Explanation | None = None
    evidence: tuple[Evidence, ...] = ()
    if finding.id == "slurm_time_limit":
        began, completed = observed.inits
        # It never got through NCCL's setup.
        why = concluded("hang_in_setup", began=began) if began and not completed else None
    elif finding.id == "nccl_watchdog_timeout":
        why, evidence = explain_dumps(observed.dumps, ranks)
        why = why or explain_hang(observed.waits, observed.progress, ranks)
    if why is None:
        return finding
    evidence = (*finding.evidence, *evidence)
    return replace(
        finding, title=why.title, message=why.cause, advice=why.advice, evidence=evidence
    )


def _ranks(seen: Sequence[Sighting], end: JobEnd) -> int | None:
    """Return the number of ranks of the job, or a lower limit."""
    known = [one.rank + 1 for one in seen if one.rank is not None]
    return max(known, default=None) if end.ranks is None else end.ranks


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


def _decide(
    observed: Observed, seen: Sequence[Sighting], end: JobEnd
) -> tuple[DiagnosedOutcome, str, Ending | None]:
    """Return how the job ended, the evidence, and a failure that the program itself reports.

    Evidence of success counts first; errors count without such evidence, or after the work.
    """
    sources, last = observed.sources, list[Ending]()
    if end.exit_code == 0 or end.state == "COMPLETED":
        return "success", end.problem or "its script ended with exit code 0", None
    if sources and all(source.endswith(_DOCUMENTS) for source in sources):
        return "unknown", "a document that quotes logs is not the log of a job", None
    if _only_cancelled(seen, end):
        return "unknown", end.problem or "cancelled", None
    for ending in observed.endings:
        if ending.kind == "restart":
            last = [one for one in last if one.file != ending.file]
        else:
            last.append(ending)
    # A message of the script after the program does not override that of the program.
    results = [one for one in last if one.kind in ("success", "failure")]
    if results and results[-1].kind == "failure":
        return "failed", _quoted(results[-1], sources), results[-1]
    outcome, why = _after_work(last, sources, seen, end) if last else _without_ending(seen, end)
    return outcome, why, None


def _only_cancelled(seen: Sequence[Sighting], end: JobEnd) -> bool:
    """Whether a job was cancelled before anything failed; what a signal ends did not fail."""
    failed = any(one.fatal and cause_level(one) == CAUSE for one in seen)
    return end.state == "CANCELLED" and not failed


def _after_work(
    done: Sequence[Ending], sources: Sequence[str], seen: Sequence[Sighting], end: JobEnd
) -> tuple[DiagnosedOutcome, str]:
    best = next(kind for kind in _MILDEST if any(one.kind == kind for one in done))
    proof = [one for one in done if one.kind == best][-1]
    evidence = _quoted(proof, sources)
    torn = _TEARDOWN if best in ("success", "work") else frozenset[str]()
    later = any(
        one.fatal
        and cause_level(one) <= _MILDEST[best]
        and one.of.group not in torn
        and not (one.file == proof.file and one.line < proof.line)
        for one in seen
    )
    if later and (best != "success" or end.exit_code is not None):
        return "failed", f"the work was done ({evidence}), but a later part failed"
    code = f"; exit code {end.exit_code} came after" if end.exit_code else ""
    return "success", evidence + code


def _quoted(ending: Ending, sources: Sequence[str]) -> str:
    text = textwrap.shorten(ending.text, 120, placeholder=" …")
    return f"{sources[ending.file]}:{ending.line} says: {text}"


def _without_ending(seen: Sequence[Sighting], end: JobEnd) -> tuple[DiagnosedOutcome, str]:
    fatal = [one for one in seen if one.fatal]
    if any(cause_level(one) < ENDED for one in fatal):
        return "failed", "no line shows that the work was done"
    if end.exit_code or end.state in ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"):
        return "failed", end.problem or f"the run is {end.state}"
    if fatal:
        return "unknown", "it was ended before its work was done"
    if any(one.survived for one in seen):
        return "unknown", "the work continued after the errors, and no line shows that it was done"
    return "unknown", "the logs show neither a failure nor that the work was done"
