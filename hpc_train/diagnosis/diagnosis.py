"""Diagnosis: why a job failed according to its logs, or the evidence that it succeeded; as text."""

import textwrap
from collections.abc import Iterable, Iterator
from typing import Literal

from hpc_train.base.plain_text import plain
from hpc_train.base.values import Finding, LogSeverity, Value
from hpc_train.runs.conditions import Transport

Role = Literal["root", "consequence", "other"]
DiagnosedOutcome = Literal["success", "failed", "unknown"]


class Evidence(Value, frozen=True, kw_only=True):
    """A line of a log, or the summary of the lines of a box or traceback.

    `line` counts from 1; 0 if the source is not a file. `time` is ISO 8601 without a zone.
    `raised_at` is the place in the program, `file:line`, that the last frame of a traceback names;
    `called_from` is the last frame of the user's program, if that frame is a library's.
    """

    source: str
    line: int
    text: str
    rank: int | None = None
    node: str | None = None
    time: str | None = None
    raised_at: str | None = None
    called_from: str | None = None


class LogFinding(Finding, frozen=True, kw_only=True):
    """A problem found in the logs, `count` times; `evidence` has the first occurrences.

    `title` states what happened, `message` its cause.

    The root is the first failure, a consequence followed from it, others are for information.
    `severity` is that in this job: an error that the job recovered from is benign.
    """

    severity: LogSeverity
    group: str
    role: Role
    title: str
    evidence: tuple[Evidence, ...]
    count: int = 1


class FirstFailure(Value, frozen=True, kw_only=True):
    """The rank that failed first; `said_by` is the source: torchrun, or status.json."""

    rank: int | None
    host: str = ""
    exit_code: int | None = None
    time: str | None = None
    said_by: str = ""


class Attempt(Value, frozen=True, kw_only=True):
    """The end of an earlier attempt in the same log; `line` is its first line.

    `id` and `title` are those of its root, if known.
    """

    outcome: DiagnosedOutcome
    why: str
    line: int
    id: str | None = None
    title: str | None = None


class Diagnosis(Value, frozen=True, kw_only=True):
    """How a job ended and why; the findings are in the order root, consequences, others.

    `why` is the reason for the outcome. `last_lines` are the last lines of the rank that failed
    first, if there is no other evidence. If a log contains several attempts, all fields describe
    the last one, which begins at `line`; `earlier` are those before it.
    """

    outcome: DiagnosedOutcome
    why: str
    findings: tuple[LogFinding, ...] = ()
    first_failure: FirstFailure | None = None
    last_lines: tuple[Evidence, ...] = ()
    earlier: tuple[Attempt, ...] = ()
    line: int = 1

    @property
    def root(self) -> LogFinding | None:
        """Return the first failure, if known."""
        return next((finding for finding in self.findings if finding.role == "root"), None)


class JobEnd(Value, frozen=True, kw_only=True):
    """Information on a job's end apart from its logs; empty for logs without a run folder.

    `state` is a word of JobState, `problem` a sentence, `ranks` how many there were, `node` the
    number of the node of the first failure.
    """

    state: str = ""
    exit_code: int | None = None
    problem: str = ""
    first_failure: FirstFailure | None = None
    ranks: int | None = None
    node: int | None = None


WIDTH = 100
_NEXT_STEPS = (
    "check the state of the job with `squeue` or `sacct`; also name its other logs: those of all "
    "ranks, and that of the job script, to which Slurm and the launcher write"
)
# How the problem of a run begins that somebody cancelled.
_CANCELLED = "cancelled"
_WORDS = {"failed": "FAILED", "success": "SUCCESS", "unknown": "UNKNOWN"}


def diagnosis_lines(diagnosis: Diagnosis, *, benign: bool) -> Iterator[str]:
    """Yield the lines, with the control characters of a log replaced."""
    root = diagnosis.root
    if root is None and diagnosis.why.startswith(_CANCELLED):
        yield from _wrapped("CANCELLED  ", f"{diagnosis.why}; nothing failed before")
        yield from _wrapped("do      ", "nothing; hpctrain retry RUN submits it again")
    elif root is None:
        yield from _wrapped(f"{_WORDS[diagnosis.outcome]}  ", diagnosis.why)
        yield "where   --"
        do = "nothing" if diagnosis.outcome == "success" else _NEXT_STEPS
        yield from _wrapped("do      ", do)
    else:
        yield from _wrapped(f"{_WORDS[diagnosis.outcome]}  ", root.title)
        yield from _wrapped("where   ", _where(root, diagnosis.first_failure))
        yield from _wrapped("do      ", root.advice)
        if root.message:
            yield from _wrapped("why     ", root.message)
        yield from _wrapped("judged  ", diagnosis.why)
        yield from _section("Evidence", _evidence_lines(root))
    if diagnosis.last_lines:
        words = diagnosis.last_lines
        yield from _section(f"Last lines of {words[0].source}", map(_quoted, words))
    before = [
        f"{_WORDS[one.outcome]}  from line {one.line}: {one.title or one.why}"
        for one in diagnosis.earlier
    ]
    if before:
        before.insert(0, f"the one above begins at line {diagnosis.line}")
    lines = (line for text in before for line in _wrapped("  ", text))
    yield from _section("Attempts before", lines)
    yield from _others(diagnosis, benign=benign)


def transport_lines(transport: Transport | None) -> Iterator[str]:
    """Yield the transport of NCCL, and its findings: slow, or not as in the site profile."""
    if transport is None:
        return
    network, over = ", ".join(transport.using_network), ", ".join(transport.interfaces)
    known = f"NCCL's network is {network}{f' over {over}' if over else ''}" if network else ""
    if not (transport.verdict or transport.findings or known):
        return
    yield ""
    yield from _wrapped("Transport  ", transport.verdict or known or "--")
    for finding in transport.findings:
        where = f" ({finding.evidence[0]})" if finding.evidence else ""
        yield from _wrapped("  ", f"{finding.message} [{finding.id}]{where}")
        yield from _wrapped("      ", finding.advice)


def _where(root: LogFinding, first_failure: FirstFailure | None) -> str:
    first = root.evidence[0] if root.evidence else None
    parts = [_place(first)] if first else []
    rank, host = (first.rank, first.node) if first else (None, None)
    if first_failure is not None and rank in (None, first_failure.rank):
        # torchrun may name a host `localhost` if it runs on one node.
        rank, host = first_failure.rank, first_failure.host or host
    parts += [f"rank {rank}"] if rank is not None else []
    parts += [f"host {host}"] if host else []
    parts += [f"raised at {first.raised_at}"] if first and first.raised_at else []
    parts += [f"called from {first.called_from}"] if first and first.called_from else []
    if first_failure is not None and first_failure.rank not in (None, rank):
        on = f" on {first_failure.host}" if first_failure.host else ""
        parts.append(f"rank {first_failure.rank}{on} ended first ({first_failure.said_by})")
    return ", ".join(parts) or "--"


def _place(evidence: Evidence, near: str = "") -> str:
    """Return `file:line`, or only the line if it is in the same file as `near`."""
    if evidence.line and evidence.source == near:
        return f"line {evidence.line}"
    return f"{evidence.source}:{evidence.line}" if evidence.line else evidence.source


def _evidence_lines(finding: LogFinding) -> Iterator[str]:
    for number, one in enumerate(finding.evidence):
        near = finding.evidence[0].source if number else ""
        text = [_place(one, near)]
        text += [f"rank {one.rank}"] if one.rank is not None else []
        text += [one.node] if one.node else []
        text += [one.time.replace("T", " ")] if one.time else []
        yield "  " + plain("  ".join(text))
        lines, most = textwrap.wrap(plain(one.text), WIDTH - 8), 1 if number else 3
        for at, line in enumerate(lines[:most], 1):
            yield f"      {line}{' …' * (at == most < len(lines))}"
    more = finding.count - len(finding.evidence)
    if more > 0:
        yield f"  and {more} more like it"


def _quoted(evidence: Evidence) -> str:
    number = f"{evidence.line:>6}  "
    return textwrap.shorten(number + plain(evidence.text), WIDTH, placeholder=" …")


def _others(diagnosis: Diagnosis, *, benign: bool) -> Iterator[str]:
    root = diagnosis.root
    near = root.evidence[0].source if root and root.evidence else ""
    rest = [one for one in diagnosis.findings if one.role != "root"]
    harm = [one for one in rest if one.severity != "benign"]
    harmless = [one for one in rest if one.severity == "benign"]
    after = [one for one in harm if one.role == "consequence"]
    yield from _section("Followed from it", _one_line_each(after, near))
    also = [one for one in harm if one.role == "other"]
    told = ((_one_line_each([one], near), _wrapped("      ", one.advice)) for one in also)
    yield from _section("Also seen", (line for both in told for part in both for line in part))
    if benign:
        yield from _section("Harmless", _one_line_each(harmless, near))
    elif harmless:
        s = "s" * (len(harmless) != 1)
        yield ""
        yield f"{len(harmless)} harmless finding{s} not shown; --benign shows them"


def _one_line_each(findings: Iterable[LogFinding], near: str) -> Iterator[str]:
    for one in findings:
        place = _place(one.evidence[0], near) if one.evidence else ""
        times = f", {one.count} times" if one.count > 1 else ""
        yield from _wrapped("  ", f"{one.title} [{one.id}] ({place}{times})")


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield ""
        yield plain(title)
        yield from found


def _wrapped(head: str, text: str) -> Iterator[str]:
    """Yield a text after its head, its lines below one another."""
    lines = textwrap.wrap(plain(text), WIDTH - len(head), break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        yield (head if number == 0 else " " * len(head)) + line
