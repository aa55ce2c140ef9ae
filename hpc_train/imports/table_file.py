"""A file -> whether it is a table of results, and its columns and rows, whatever its kind.

CSV and JSON may be compressed; the bytes decide, not the extension. A folder of MLflow is a table.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from hpc_train.compressed_files import DAMAGE, START, UNPACK, packed_kind
from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable, is_csv_of_results, parse_csv, table_of
from hpc_train.imports.json_table import is_json_of_results, parse_json
from hpc_train.imports.workbook import WORKBOOKS, read_workbook, sheet_of
from hpc_train.model.result_columns import SIZES, plain_name
from hpc_train.regularfile import LARGEST, is_folder, is_regular, open_stream, read_regular
from hpc_train.yamlfile import read

_HEAD = 64 * 1024
_CSV = (".csv", ".tsv")
_JSON = (".json", ".jsonl", ".ndjson")


def is_result_table(path: Path) -> bool:
    """Whether a file is a table of results, by its extension and the names in its header.

    A file that cannot be read as what its extension says is one: reading it names the reason.
    """
    if path.is_dir():
        return is_mlruns(path)
    path, _ = sheet_of(path)
    name = _name(path)
    ending = Path(name).suffix
    if ending not in (*_CSV, *_JSON, *WORKBOOKS) or not path.is_file():
        return False
    if ending in WORKBOOKS:
        return True
    try:
        head = _contents(path, _HEAD)
    except LogParseError:
        return ending in _CSV
    if ending in _CSV:
        return is_csv_of_results(name, head)
    return is_json_of_results(head.decode("utf-8-sig", "replace"))


def read_table(path: Path, sheet: str = "") -> ResultTable:
    """Read a table of results; `sheet` is that of a workbook, if `FILE.xlsx:SHEET` names none.

    Raises:
        LogParseError: it cannot be read, or is not a table of results. MissingExtraError: openpyxl
            is not installed.
    """
    ending = Path(_name(path)).suffix
    if ending in WORKBOOKS:
        if path.suffix.lower() in UNPACK:
            raise LogParseError(
                f"{path}: compressed Excel workbook", f"unpack it: {ending} is a zip"
            )
        return read_workbook(path, sheet)
    file, named = sheet_of(path)
    if named:
        if sheet not in ("", named):
            raise LogParseError(f"{path}: also --sheet {sheet!r} is given", "name one sheet")
        return read_workbook(file, named)._replace(path=path)
    if sheet:
        raise LogParseError(f"{path}: not an Excel workbook, so it has no sheets", "omit --sheet")
    if path.is_dir():
        return read_mlruns(path)
    raw = _contents(path, LARGEST + 1)
    if len(raw) > LARGEST:
        raise LogParseError(f"{path}: larger than {LARGEST >> 30} GiB", "split the table")
    if ending in _JSON or (ending not in _CSV and raw.lstrip()[:1] in (b"{", b"[")):
        return parse_json(path, _utf8(path, raw))
    return parse_csv(path, raw)


def _name(path: Path) -> str:
    """Return the file name in lower case, without the extension of a compressed file."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in UNPACK else name


def _contents(path: Path, most: int) -> bytes:
    """Return at most the first `most` bytes, decompressed."""
    try:
        with open_stream(path) as file:
            # A pipe may deliver fewer bytes than asked for, and cannot be read again.
            start = _all(file, START)
            if not (kind := packed_kind(start)):
                return _all(file, most - len(start), start)
            packed = io.BytesIO(start + _all(file, LARGEST))
            return _all(UNPACK[kind](packed), most)
    except DAMAGE as failure:
        reason = failure.strerror if isinstance(failure, OSError) and failure.strerror else failure
        raise LogParseError(f"{path}: cannot be read: {reason}") from None


class _Source(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def _all(file: _Source, most: int, start: bytes = b"") -> bytes:
    """Return what was read before, and at most so many bytes more."""
    parts = [start]
    while most > 0 and (part := file.read(min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _utf8(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = raw[: failure.start].count(b"\n") + 1
        message = f"{path}:{line}: not UTF-8 text (byte {failure.start})"
        raise LogParseError(message, "save it in UTF-8") from None


# A folder `mlruns` of MLflow -> a table of its runs.
#
# A run is a folder with `meta.yaml`, `params/NAME` (a text) and `metrics/NAME`, which has a line
# `TIMESTAMP VALUE STEP` for each logged value. Names with `/` are in folders of their own.

_META = "meta.yaml"
_STATES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
# Measurements of a step; of any other metric the last value counts, and of memory the largest.
_OF_STEPS = frozenset({
    "step_time", "epoch_time", "samples_per_second", "tokens_per_second", "tflops", "mfu", "power",
    "samples_per_second_per_gpu", "tokens_per_second_per_gpu", "tflops_per_gpu", "power_per_gpu",
})  # fmt: skip
_WHOLE = re.compile(r"[0-9]{1,10}(?:\.0)?")
_NONE = ("", "None")
_LARGEST = 64 << 20
# A folder of many logs is not searched to its end for runs.
_SEARCHED = 1000


class _Run(NamedTuple):
    name: str
    run_id: str
    cells: dict[str, str]
    omitted: tuple[str, ...]


def is_mlruns(path: Path) -> bool:
    """Whether a folder is one of MLflow: of all experiments, of one, or of a run."""
    if is_regular(path / _META):
        return _is_run(path) or any(_runs_below(path))
    return any(_runs_below(one) for one in islice(_folders(path), _SEARCHED))


def read_mlruns(path: Path) -> ResultTable:
    """Read the runs of a folder as a table: settings as `params.NAME`, values as `metrics.NAME`.

    Times and rates are medians over the steps without the first value; others are the last value.

    Raises:
        LogParseError: a file cannot be read, or a line of a metric is not one of MLflow.
    """
    found = [_read(folder) for folder in _all_runs(path)]
    runs = [run for run in found if run is not None]
    if not runs:
        raise LogParseError(f"{path}: no run in it that was not deleted", "name the folder mlruns")
    counts = Counter(run.name for run in runs)
    columns = {name: None for run in runs for name in run.cells}
    rows = [
        (number, (_unique(run, counts), *(run.cells.get(column, "") for column in columns)))
        for number, run in enumerate(runs, start=1)
    ]
    named = path if path.name else path.resolve()
    table = table_of(named, 1, ("run", *columns), rows)
    return table._replace(notes=tuple(_notes(path, found)))


def _unique(run: _Run, counts: Counter[str]) -> str:
    return run.name if counts[run.name] == 1 else f"{run.name} {run.run_id[:8]}"


def _notes(path: Path, found: list[_Run | None]) -> Iterator[str]:
    yield (
        f"{path}: of times and rates that were logged several times, the median without the first "
        "value; of memory the largest, of other metrics the last value."
    )
    deleted = found.count(None)
    if deleted:
        yield f"{path}: {deleted} deleted runs are not read."
    omitted = [place for run in found if run for place in run.omitted]
    if omitted:
        yield f"{path}: values that are not finite are not used: {', '.join(omitted[:6])}."


def _all_runs(path: Path) -> list[Path]:
    if _is_run(path):
        return [path]
    return [run for one in (path, *_folders(path)) for run in _runs_below(one)]


def _runs_below(path: Path) -> list[Path]:
    """Return the folders of the runs of an experiment, which has a `meta.yaml` as well."""
    if not is_regular(path / _META):
        return []
    # A run that failed early has no metrics.
    return [run for run in _folders(path) if is_regular(run / _META)]


def _is_run(path: Path) -> bool:
    return is_folder(path / "metrics") or is_folder(path / "params")


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []
    return [path / name for name in sorted(names) if is_folder(path / name)]


def _read(folder: Path) -> _Run | None:
    """Return a run; None if it was deleted."""
    meta = read(folder / _META, LogParseError).data
    if not isinstance(meta, dict) or meta.get("lifecycle_stage") == "deleted":
        return None
    run_id = str(meta.get("run_id") or folder.name)
    cells = {"state": _state(meta.get("status")), "wall_s": _wall(meta)}
    for name, path in _files(folder / "params"):
        cells[f"params.{name}"] = _setting(name, path)
    omitted = []
    for name, path in _files(folder / "metrics"):
        values = _values(path)
        finite = [value for value in values if isfinite(value)]
        if len(finite) < len(values):
            omitted.append(str(path))
        # A loss that ends as NaN has no last value.
        if finite and (isfinite(values[-1]) or plain_name(name) in _OF_STEPS):
            cells[f"metrics.{name}"] = repr(_reduced(plain_name(name), finite))
    return _Run(str(meta.get("run_name") or run_id), run_id, cells, tuple(omitted))


def _setting(name: str, path: Path) -> str:
    """Return a setting on one line; that of a size must be a whole number."""
    text = " ".join(_text(path).split())
    if plain_name(name) in SIZES and text not in _NONE and not _WHOLE.fullmatch(text):
        raise LogParseError(
            f"{path}: {name}: {text[:40]!r} is not a whole number", "correct this file"
        )
    return text


def _state(status: object) -> str:
    return _STATES.get(status, "") if isinstance(status, int) else str(status or "")


def _wall(meta: dict[str, Any]) -> str:
    start, end = meta.get("start_time"), meta.get("end_time")
    if isinstance(start, int) and isinstance(end, int) and 0 < start < end:
        return str((end - start) / 1000)
    return ""


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            yield path.relative_to(folder).as_posix(), path


def _text(path: Path) -> str:
    try:
        return read_regular(path, _LARGEST).decode("utf-8", "replace")
    except OSError as failure:
        raise LogParseError(f"{path}: cannot be read: {failure.strerror or failure}") from None


def _values(path: Path) -> list[float]:
    """Return the values of a metric in the order of their steps."""
    found = []
    # A last line without an end is being written.
    for number, line in enumerate(_text(path).split("\n")[:-1], start=1):
        try:
            stamp, value, step = (line + " 0").split()[:3]
            found.append((int(step), int(stamp), float(value)))
        except ValueError:
            raise LogParseError(
                f"{path}:{number}: {line[:40]!r} is not a line `TIMESTAMP VALUE STEP` of MLflow"
            ) from None
    return [value for _, _, value in sorted(found, key=lambda one: one[:2])]


def _reduced(name: str, values: list[float]) -> float:
    if name in _OF_STEPS:
        return median(values[1:] or values)
    return max(values) if name == "memory" else values[-1]
