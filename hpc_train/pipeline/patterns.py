"""Regular expressions of a command line -> checked patterns."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.model.log_pattern import LogPattern
from hpc_train.model.record import StatedScope
from hpc_train.specs.log_pattern import check_pattern


def own_patterns(regexes: Sequence[str], scope: StatedScope) -> tuple[LogPattern, ...]:
    """Return a pattern for each regex.

    Raises:
        SpecError: a regex is invalid, or names no metric.
    """
    patterns = tuple(LogPattern(regex=regex, scope=scope) for regex in regexes)
    for pattern in patterns:
        check_pattern(pattern, "--pattern")
    return patterns
