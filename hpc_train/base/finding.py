"""Finding: a problem that a check found, how severe it is, and what to do."""

from collections.abc import Iterable
from typing import Literal

from hpc_train.base.value import Value

Severity = Literal["error", "warning", "info"]
# Of a failure in a log: fatal ended the job, benign did no harm.
LogSeverity = Literal["fatal", "warning", "info", "benign"]


class Finding(Value, frozen=True, kw_only=True):
    """What every check reports; subclasses add the place and what only their kind has.

    `id` names the rule, signature or section of a report. `message` states what is wrong or its
    cause, `advice` what to do. An error prevents a job from working or makes it wrong, a warning
    costs time or hides a failure, an info is for information.
    """

    id: str = ""
    severity: Severity | LogSeverity
    message: str
    advice: str = ""


class LintFinding(Finding, frozen=True, kw_only=True):
    """A finding in a job script; lines count from 1."""

    severity: Severity
    line: int


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether one of the findings is an error."""
    return any(finding.severity == "error" for finding in findings)
