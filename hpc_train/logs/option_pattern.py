"""`--pattern REGEX` and `--pattern NAME=REGEX` -> patterns of log lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpc_train.base.errors import SpecError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.jobs.log_selection import PLACES, LogPattern, StatedScope
from hpc_train.jobs.validate_log_pattern import check_pattern
from hpc_train.logs.record import FACTORS, heading

_NAMED = re.compile(r"([A-Za-z_]\w{0,40})(?: ?\[([^\]\n]{1,12})\])?=(.+)", re.DOTALL)
_PARENTHESIS = re.compile(r"\((?!\?)")
_LONGEST = 2000
_WHERE = "--pattern"


def own_patterns(texts: Sequence[str], scope: StatedScope) -> tuple[LogPattern, ...]:
    r"""Return a pattern for each text: `took (?P<step_time>[\d.]+)`, `step_time[ms]=took ([\d.]+)`.

    In the second form the only group without a name is the metric, in the given unit.

    Raises:
        SpecError: a regex is invalid, or names no metric or an unknown one; an unknown unit.
    """
    patterns = tuple(_pattern(text, scope) for text in texts)
    for pattern in patterns:
        check_pattern(pattern, _WHERE)
    return patterns


def _pattern(text: str, scope: StatedScope) -> LogPattern:
    match = _NAMED.fullmatch(text)
    if match is None or _named_groups(match[3]) - PLACES:
        return LogPattern(regex=text, scope=scope)
    name, unit, regex = match.groups()
    if name not in UNITS:
        raise SpecError(
            f"{_WHERE}: {name!r} is not a metric{nearest(name, UNITS)}",
            f"allowed: {', '.join(UNITS)}",
        )
    factor = _factor(name, unit) if unit else 1.0
    scale = {} if factor == 1 else {name: factor}
    return LogPattern(regex=_with_name(regex, name), scope=scope, scale=scale)


def _named_groups(regex: str) -> frozenset[str]:
    try:
        return frozenset(re.compile(regex).groupindex)
    except (re.error, OverflowError, RecursionError):
        # Reported by `check_pattern`.
        return frozenset()


def _factor(name: str, unit: str) -> float:
    found, known = heading(f"{name} [{unit}]"), UNITS[name]
    if found.name != name:
        units = ", ".join(
            FACTORS.get("fraction" if name in ("accuracy", "mfu") else known, [known])
        )
        raise SpecError(f"{_WHERE}: {name} is in {known}, not in {unit}", f"allowed units: {units}")
    return found.factor


def _with_name(regex: str, name: str) -> str:
    """Return the regex with a name for its only group without one.

    Which parentheses begin a group, `re` decides: within a class of characters they do not.
    """
    places = [match.end() for match in _PARENTHESIS.finditer(regex[:_LONGEST])]
    named = [f"{regex[:place]}?P<{name}>{regex[place:]}" for place in places]
    groups = [text for text in named if name in _named_groups(text)]
    if len(groups) != 1:
        raise SpecError(
            f"{_WHERE}: {name}: the regex has {len(groups)} groups without a name, not one",
            r"put the number in parentheses, and nothing else: step_time=took ([\d.]+) s",
        )
    return groups[0]
