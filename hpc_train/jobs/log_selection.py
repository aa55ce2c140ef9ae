"""Which logs are read, and the patterns of lines that a user defines."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.errors import SpecError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.base.regex import TimedPattern, literal_of
from hpc_train.base.values import Value

StatedScope = Literal["global", "per_gpu", "per_rank"]
PLACES = frozenset({"step", "rank"})
"""Groups that are no metrics, but say where the metrics belong."""


class LogPattern(Value, frozen=True, kw_only=True):
    """A pattern of log lines, and the meaning of its groups."""

    regex: Annotated[
        str,
        Meta(min_length=1, max_length=2000, description="Python regex; named groups are metrics."),
    ]
    scope: Annotated[
        StatedScope, Meta(description="Scope of the values: the job, one GPU or one rank.")
    ]
    literal: Annotated[
        str, Meta(description="Text in every such line; default: the longest in the regex.")
    ] = ""
    units: Annotated[
        dict[str, str], Meta(description="New metric -> its unit, `W` for power.")
    ] = {}
    scale: Annotated[
        dict[str, float],
        Meta(description="Metric -> factor to the metric's unit, 0.001 for ms."),
    ] = {}


class Search(Value, frozen=True, kw_only=True):
    """Folder of runs, and formats and patterns of logs.

    `points` is a file with the sizes of logs, `sizes` are `gpus`, `nodes` and `ranks` in the order
    of the logs. `excluded` names excluded runs, with the reason. With `allow_failed`, logs that end
    in a failure also count. A person may state `scaling`, `batch` (samples in a step of all ranks;
    of each rank with weak scaling), and whether `rates` of an unknown scope are of the job or of
    each rank. The form `table` is that of a table of results.
    """

    root: Path
    form: str = "auto"
    patterns: tuple[LogPattern, ...] = ()
    points: Path | None = None
    sizes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    excluded: Mapping[str, str] = MappingProxyType({})
    allow_failed: bool = False
    scaling: Literal["strong", "weak"] | None = None
    batch: float | None = None
    rates: Literal["job", "rank"] | None = None


_LEAST = 4


def check_pattern(pattern: LogPattern, where: str) -> None:
    """Check a pattern with the origin `where` (`study.yaml:7: pattern`, `--pattern`).

    Raises:
        SpecError: the regex is invalid, a group is not a metric, a unit is
        missing, or no text is certain to be in every line.
    """
    groups = _groups(pattern, where)
    for metric in groups:
        _check_unit(metric, pattern, where)
    for key, values in (("units", pattern.units), ("scale", pattern.scale)):
        for name in values:
            if name not in groups:
                raise SpecError(
                    f"{where}: {key}: the regex has no group {name!r}{nearest(name, groups)}; "
                    f"its metrics: {', '.join(groups)}"
                )
    for name, factor in pattern.scale.items():
        if not math.isfinite(factor) or factor == 0:
            raise SpecError(f"{where}: scale: {name} is {factor}; it must be a number, and not 0")
    _check_literal(pattern, where)


def _groups(pattern: LogPattern, where: str) -> list[str]:
    try:
        compiled = TimedPattern(pattern.regex)
    except (re.error, OverflowError, RecursionError) as error:
        raise SpecError(f"{where}: the regex is invalid: {error}") from error
    groups = [name for name in compiled.groupindex if name not in PLACES]
    if not groups:
        raise SpecError(
            f"{where}: the regex has no named group for a metric",
            r"name the metric: (?P<step_time>[\d.]+); a group `step` or `rank` is not a metric",
        )
    return groups


def _check_unit(metric: str, pattern: LogPattern, where: str) -> None:
    unit, known = pattern.units.get(metric), UNITS.get(metric)
    if known is None and not unit:
        raise SpecError(
            f"{where}: the group {metric!r} is not a known metric"
            f"{nearest(metric, UNITS)}; known: {', '.join(UNITS)}",
            f"a new metric needs a unit, in a study file: units: {{{metric}: W}}",
        )
    if known is not None and unit not in (None, known):
        raise SpecError(
            f"{where}: units: {metric} is always in {known}, not {unit}",
            f"give a factor for its values: scale: {{{metric}: 0.001}}",
        )


def _check_literal(pattern: LogPattern, where: str) -> None:
    literal = pattern.literal or literal_of(pattern.regex)
    if len(literal.encode()) < _LEAST or "\n" in literal or "\r" in literal:
        source = f"literal: {literal!r}" if pattern.literal else "the regex"
        raise SpecError(
            f"{where}: {source} has no text of {_LEAST} characters or more that each line contains",
            "logs are first searched for this text; set it: literal: 'step time'",
        )
