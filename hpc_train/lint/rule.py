"""A rule: its check, the reason, and the correction."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from hpc_train.lint.context import LintContext
from hpc_train.lint.script import JobScript
from hpc_train.model.finding import Severity
from hpc_train.model.value import Value


class Subject(Value, frozen=True, kw_only=True):
    """The input of a rule: a script, and its context."""

    script: JobScript
    context: LintContext


class Edit(Value, frozen=True, kw_only=True):
    """Replace `before` by `after` in a line, 0 being the whole text; empty `before` inserts."""

    line: int
    before: str
    after: str


class RuleHit(Value, frozen=True, kw_only=True):
    """A violation of a rule; severity and advice default to the rule's."""

    line: int
    message: str
    severity: Severity | None = None
    advice: str | None = None
    edit: Edit | None = None


Check = Callable[[Subject], Iterable[RuleHit]]


class LintRule(Value, frozen=True, kw_only=True):
    """One check with its texts; the hits of a `fixable` rule carry edits."""

    id: str
    severity: Severity
    title: str
    why: str
    advice: str
    check: Check
    fixable: bool = False


def rule(
    id: str, severity: Severity, title: str, *, why: str, advice: str
) -> Callable[[Check], LintRule]:
    """Make a rule from a function that yields hits."""

    def make(check: Check) -> LintRule:
        return LintRule(id=id, severity=severity, title=title, why=why, advice=advice, check=check)

    return make


def fixable(rule: LintRule) -> LintRule:
    """Mark a rule whose hits carry edits."""
    return replace(rule, fixable=True)
