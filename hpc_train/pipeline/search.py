"""What is looked for, and where."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hpc_train.model.log_pattern import LogPattern
from hpc_train.model.value import Value


class Search(Value, frozen=True, kw_only=True):
    """Where runs are, and what to look for in logs: a format, patterns and a prefix of one's own.

    `cache` is a folder in which to remember what foreign logs held. `points` is a file that states
    the sizes of logs, `excluded` names runs that a person leaves out, with the reason. With
    `allow_failed`, logs that end in a failure count, too.
    """

    root: Path
    form: str = "auto"
    patterns: tuple[LogPattern, ...] = ()
    prefix: str = ""
    cache: Path | None = None
    points: Path | None = None
    excluded: Mapping[str, str] = MappingProxyType({})
    allow_failed: bool = False
