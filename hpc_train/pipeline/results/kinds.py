"""Paths of foreign results -> their kind: tables, records, sizes of logs, or logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hpc_train.errors import LogParseError
from hpc_train.records.record_file import is_record_file
from hpc_train.records.result_table import is_result_table

Kind = Literal["tables", "records", "points", "logs"]


def kind_of(path: Path) -> Kind:
    """Return the kind of a file, from its extension and its first line; a folder contains logs."""
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return "points"
    try:
        if is_record_file(path):
            return "records"
        return "tables" if is_result_table(path) else "logs"
    except OSError:
        return "logs"


def one_kind(paths: Sequence[Path]) -> Kind:
    """Return the common kind of all paths.

    Raises:
        LogParseError: they are of several kinds, several files of sizes, or a named pipe.
    """
    kinds: dict[Kind, Path] = {}
    for path in paths:
        if path.is_fifo() and not path.is_relative_to("/dev"):
            # Reading it would block until another process writes.
            raise LogParseError(f"{path}: a pipe, not a file", "use `-` for stdin")
        kinds.setdefault(kind_of(path), path)
    if len(kinds) > 1:
        named = " and ".join(f"{kind} ({path})" for kind, path in kinds.items())
        hint = "give the sizes of logs with --points FILE" if "points" in kinds else ""
        raise LogParseError(
            f"{named} cannot be put into one report", hint or "make a report of each kind"
        )
    kind = next(iter(kinds))
    if kind == "points" and len(paths) > 1:
        raise LogParseError("a report accepts one file of sizes", "put all logs into one of them")
    return kind
