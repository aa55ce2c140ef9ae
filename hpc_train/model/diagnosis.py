"""Diagnosis: why a job failed, by the lines of its logs; or what makes sure that it did not."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

Severity = Literal["fatal", "warning", "info", "benign"]
Role = Literal["root", "consequence", "other"]
Outcome = Literal["success", "failed", "unknown"]


class Evidence(Value, frozen=True, kw_only=True):
    """A line of a log, or what the lines of a box or traceback come down to.

    `line` counts from 1; 0 where it is no file that says it. `time` is ISO 8601 without a zone.
    `raised_at` is the place in the program, `file:line`, that the last frame of a traceback names;
    `called_from` the last one of the user's program, where that is a library's.
    """

    source: str
    line: int
    text: str
    rank: int | None = None
    node: str | None = None
    time: str | None = None
    raised_at: str | None = None
    called_from: str | None = None


class Finding(Value, frozen=True, kw_only=True):
    """Something that the logs say went wrong, `count` times; `evidence` holds the first of them.

    The root is what failed first, a consequence what followed from it, all else is worth knowing.
    `severity` is that in this job: what a job survived is benign.
    """

    id: str
    group: str
    severity: Severity
    role: Role
    title: str
    cause: str
    advice: str
    evidence: tuple[Evidence, ...]
    count: int = 1


class Culprit(Value, frozen=True, kw_only=True):
    """The rank that failed first; `said_by` is who observed it: torchrun, or status.json."""

    rank: int | None
    host: str = ""
    exit_code: int | None = None
    time: str | None = None
    said_by: str = ""


class Attempt(Value, frozen=True, kw_only=True):
    """How an attempt of a job ended, that the next one is appended to; `line` is its first line.

    `id` and `title` are those of its root, if that is known.
    """

    outcome: Outcome
    why: str
    line: int
    id: str | None = None
    title: str | None = None


class Diagnosis(Value, frozen=True, kw_only=True):
    """How a job ended and why; the findings come in the order root, consequences, others.

    `why` says what the outcome rests on. `last_words` are the last lines of the rank that failed
    first, where nothing else says why. Where a log holds several attempts, all else is about the
    last one, which begins at `line`; `earlier` are those before it.
    """

    outcome: Outcome
    why: str
    findings: tuple[Finding, ...] = ()
    first_failure: Culprit | None = None
    last_words: tuple[Evidence, ...] = ()
    earlier: tuple[Attempt, ...] = ()
    line: int = 1

    @property
    def root(self) -> Finding | None:
        """Return what failed first, if that is known."""
        return next((finding for finding in self.findings if finding.role == "root"), None)


class JobEnd(Value, frozen=True, kw_only=True):
    """What is known of a job's end apart from its logs; all empty for logs of anybody.

    `state` is a word of JobState, `problem` a sentence, `ranks` how many there were.
    """

    state: str = ""
    exit_code: int | None = None
    problem: str = ""
    first_failure: Culprit | None = None
    ranks: int | None = None
