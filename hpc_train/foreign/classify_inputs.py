"""Arguments of the command line -> run folders, or foreign files and their kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hpc_train.base.errors import LogParseError, UnknownNameError
from hpc_train.foreign.table_file import is_result_table
from hpc_train.foreign.workbook import sheet_of
from hpc_train.logs.foreign_logs_by_run import no_such_file
from hpc_train.logs.record_file import is_record_file
from hpc_train.runs.json_files import expanded
from hpc_train.runs.run_folders import find


def classify(words: Sequence[str], root: Path) -> tuple[list[Path], list[Path]]:
    """Split arguments into foreign files and folders of runs; return both.

    Raises:
        UnknownNameError: an argument is neither. LogParseError: it can only be a file, which does
        not exist.
    """
    logs: list[Path] = []
    homes: list[Path] = []
    for word in words:
        try:
            homes.append(find(root, word))
        except UnknownNameError as unknown:
            paths = _files(word)
            if not paths:
                file, sheet = sheet_of(Path(word))
                raise no_such_file(str(file) if sheet else word) or unknown from None
            if Path(word).suffix == ".py":
                raise LogParseError(
                    f"{word}: a program, not a log", f"hpctrain submit {word}, then name its run"
                ) from None
            logs += paths
    return logs, homes


def _files(word: str) -> list[Path]:
    """Return the files of an argument, each with the sheet if it names one."""
    file, sheet = sheet_of(Path(word))
    return [Path(f"{path}:{sheet}") for path in expanded(str(file))] if sheet else expanded(word)


TABLE = "table"
"""The format of a table of results whose file name does not show it, such as stdin."""
InputKind = Literal["tables", "records", "points", "logs"]


def kind_of(path: Path) -> InputKind:
    """Return the kind of a file, from its extension and its first line; a folder contains logs."""
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return "points"
    if path.suffix == ".parquet" and path.is_file():
        from hpc_train.foreign.parquet import has_records

        return "records" if has_records(path) else "tables"
    try:
        if is_record_file(path):
            return "records"
        return "tables" if is_result_table(path) else "logs"
    except OSError:
        return "logs"


def one_kind(paths: Sequence[Path], form: str) -> InputKind:
    """Return the common kind of all paths; with the form `table`, it is that of tables.

    Raises:
        LogParseError: they are of several kinds, several files of sizes, or a named pipe.
    """
    kinds: dict[InputKind, Path] = {}
    for path in paths:
        if path.is_fifo() and not path.is_relative_to("/dev"):
            # Reading it would block until another process writes.
            raise LogParseError(f"{path}: a pipe, not a file", "use `-` for stdin")
        kinds.setdefault("tables" if form == TABLE else kind_of(path), path)
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
