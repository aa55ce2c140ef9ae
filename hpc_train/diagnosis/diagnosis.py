"""Diagnosis: why a job failed according to its logs, or the evidence that it succeeded."""

from typing import Literal

from hpc_train.base.finding import Finding, LogSeverity
from hpc_train.base.value import Value

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
