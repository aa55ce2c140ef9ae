"""Options for the search of runs and logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hpc_train.model.log_pattern import LogPattern
from hpc_train.model.value import Value


class Search(Value, frozen=True, kw_only=True):
    """Folder of runs, and formats, patterns and prefixes of logs.

    `cache` is a folder for the index of foreign logs. `points` is a file with the sizes of logs,
    `excluded` names excluded runs, with the reason. With `allow_failed`, logs that end in a failure
    also count.
    """

    root: Path
    form: str = "auto"
    patterns: tuple[LogPattern, ...] = ()
    prefix: str = ""
    cache: Path | None = None
    points: Path | None = None
    excluded: Mapping[str, str] = MappingProxyType({})
    allow_failed: bool = False
