"""A rule: its check, the reason, and the correction; and the context in which it is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from hpc_train.base.decode import load_data
from hpc_train.base.errors import SpecError
from hpc_train.base.values import Severity, Value, Version, older
from hpc_train.lint.script import JobScript

if TYPE_CHECKING:
    from hpc_train.sites.profile import SiteProfile
    from hpc_train.slurm.live_cluster import SlurmAnswer

LintFabric = Literal["infiniband", "slingshot", "efa", "ethernet"]


class LintContext(Value, frozen=True, kw_only=True):
    """A site and versions; `answer` is what Slurm says of the script, if it was asked."""

    site: SiteProfile | None = None
    fabric: LintFabric | None = None
    nccl: Version | None = None
    slurm: Version | None = None
    answer: SlurmAnswer | None = None


# Name, first version, end of the versions, example. The ends leave room for later releases.
NCCL = ("NCCL", "2.1", "4", "2.21.5")
SLURM = ("Slurm", "20.0", "40", "24.11.5")


def parse_version(text: str, place: str, product: tuple[str, str, str, str]) -> Version:
    """Read `2.21`, `24.11.5rc1`, or the version of a package, such as `2.21.5-1`.

    Raises:
        SpecError: the text is no version, or is outside the product's range.
    """
    name, first, end, example = product
    match = re.fullmatch(r"v?(\d{1,4}(?:\.\d{1,4}){0,3})(?:[-+a-z].*)?", text.strip())
    if match is None or older(match[1], first) or not older(match[1], end):
        message = f"{place}: {text[:40]!r} is not a version of {name}"
        raise SpecError(message, f"write it like {example}")
    return Version.parse(match[1])


class Subject(Value, frozen=True, kw_only=True):
    """The input of a rule: a script, and its context."""

    script: JobScript
    context: LintContext


class Edit(Value, frozen=True, kw_only=True):
    """Replace `before` by `after` in a line, 0 being the whole text; empty `before` inserts."""

    line: int
    before: str
    after: str


class RuleHit(Value, frozen=True):
    """A violation of a rule; severity and advice default to the rule's."""

    line: int
    message: str
    severity: Severity | None = None
    advice: str | None = None
    edit: Edit | None = None


Check = Callable[[Subject], Iterable[RuleHit]]


class _Reasons(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    why: dict[str, str]


@cache
def _reasons() -> dict[str, str]:
    return load_data("lint_rules.yaml", _Reasons).why


class LintRule(Value, frozen=True, kw_only=True):
    """One check with its texts; the hits of a `fixable` rule carry edits."""

    id: str
    severity: Severity
    title: str
    advice: str
    check: Check
    fixable: bool = False

    @property
    def why(self) -> str:
        """The reason for the rule, which only lists of rules and SARIF have."""
        return _reasons()[self.id]


def rule(
    id: str, severity: Severity, title: str, *, advice: str, fixable: bool = False
) -> Callable[[Check], LintRule]:
    """Make a rule from a function that yields hits."""
    make = partial(LintRule, id=id, severity=severity, title=title, advice=advice, fixable=fixable)
    return lambda check: make(check=check)
