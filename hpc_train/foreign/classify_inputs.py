"""Arguments of the command line -> run folders, or foreign files and their kind."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from hpc_train.base.errors import LogParseError, UnknownNameError
from hpc_train.base.files import open_regular
from hpc_train.logs.collect import no_such_file
from hpc_train.logs.log_file import DAMAGE, UNPACK
from hpc_train.logs.record import is_record_file
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.runs.json_files import expanded
from hpc_train.runs.run import JobState
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
                file, sheet = _with_sheet(word)
                raise no_such_file(str(file) if sheet else word) or unknown from None
            if Path(word).suffix == ".py":
                raise LogParseError(
                    f"{word}: a program, not a log", f"hpctrain submit {word}, then name its run"
                ) from None
            logs += paths
    return logs, homes


def _files(word: str) -> list[Path]:
    """Return the files of an argument, each with the sheet if it names one."""
    file, sheet = _with_sheet(word)
    return [Path(f"{path}:{sheet}") for path in expanded(str(file))] if sheet else expanded(word)


def _with_sheet(word: str) -> tuple[Path, str]:
    """Return workbook and sheet of `FILE.xlsx:SHEET`; else the path and no sheet."""
    if ".xls" not in word.lower():
        return Path(word), ""
    from hpc_train.foreign.table_file import sheet_of

    return sheet_of(Path(word))


_TABLE = "table"
"""The format of a table of results whose file name does not show it, such as stdin."""
_LOGS = (".log", ".out", ".err")
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
        if path.suffix in _LOGS and path.is_file():
            return "logs"
        from hpc_train.foreign.table_file import is_result_table

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
        kinds.setdefault("tables" if form == _TABLE else kind_of(path), path)
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


def refuse_same_logs(study: ExpectedStudy, files: Mapping[str, Sequence[Path]]) -> None:
    """Refuse completed runs if the logs of two of them are the same, byte for byte, unpacked.

    Raises:
        LogParseError: two logs are the same; the message names both runs.
    """
    ok = JobState.COMPLETED.value
    counted = {run.run_id: files.get(run.run_id, ()) for run in study.runs if run.state == ok}
    packed = any(path.suffix in UNPACK for paths in counted.values() for path in paths)
    sizes = {
        name: tuple(0 if packed else path.stat().st_size for path in paths)
        for name, paths in counted.items()
        if paths and all(path.is_file() for path in paths)
    }
    counts, names = Counter(sizes.values()), dict[str, str]()
    for name in (name for name, size in sizes.items() if counts[size] > 1):
        try:
            digest = _digest(counted[name])
        except (*DAMAGE, LogParseError):
            continue
        if (one := names.setdefault(digest, name)) != name:
            raise LogParseError(
                f"{one} and {name} are the same log, byte for byte: one job, not two repetitions",
                f"give one of them, or exclude one: --exclude '{name}=a copy of {one}'",
            )


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with open_regular(path) as file:
            unpacked = UNPACK[path.suffix](file) if path.suffix in UNPACK else file
            while block := unpacked.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()
