"""A file -> whether it is a table of results, and its columns and rows, whatever its kind.

CSV and JSON may be compressed; the bytes decide, not the extension. A folder of MLflow is a table.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from hpc_train.base.errors import LogParseError
from hpc_train.base.file_kinds import COMPRESSED_START, DAMAGE, UNPACK, packed_kind
from hpc_train.base.files import LARGEST, is_folder, is_regular, open_stream, read_regular
from hpc_train.base.yamlfile import read
from hpc_train.foreign.csv_table import (
    EXAMPLE,
    ResultTable,
    is_csv_of_results,
    is_text_of_results,
    names_a_result,
    parse_csv,
    table_of,
)
from hpc_train.foreign.workbook import WORKBOOKS, read_workbook, sheet_of
from hpc_train.logs.record import plain_name

_HEAD = 64 * 1024
_CSV = (".csv", ".tsv")
_JSON = (".json", ".jsonl", ".ndjson")
_TEXT = (".md", ".txt", ".dat")
# Google Benchmark writes this object.
_BENCHMARKS = re.compile(r'\A\s*\{\s*"context"\s*:.*?"benchmarks"\s*:', re.DOTALL)


def is_result_table(path: Path) -> bool:
    """Whether a file is a table of results, by its extension and the names in its header.

    A file that cannot be read as what its extension says is one: reading it names the reason.
    """
    if path.is_dir():
        return is_mlruns(path)
    path, _ = sheet_of(path)
    name = _name(path)
    ending = Path(name).suffix
    if ending not in (*_CSV, *_JSON, *_TEXT, *WORKBOOKS) or not path.is_file():
        return False
    if ending in WORKBOOKS:
        return True
    try:
        head = _contents(path, _HEAD)
    except LogParseError:
        return ending in _CSV
    if ending in _CSV:
        return is_csv_of_results(name, head)
    text = head.decode("utf-8-sig", "replace")
    return is_text_of_results(text) if ending in _TEXT else is_json_of_results(text)


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
        try:
            return parse_json(path, raw.decode("utf-8-sig"))
        except UnicodeDecodeError as failure:
            line = raw[: failure.start].count(b"\n") + 1
            message = f"{path}:{line}: not UTF-8 text (byte {failure.start})"
            raise LogParseError(message, "save it in UTF-8") from None
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
            start = _all(file, COMPRESSED_START)
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
    below = [run for one in (path, *_folders(path)) for run in _runs_below(one)]
    found = [_read(folder) for folder in ([path] if _is_run(path) else below)]
    runs = [run for run in found if run is not None]
    if not runs:
        raise LogParseError(f"{path}: no run in it that was not deleted", "name the folder mlruns")
    counts = Counter(run.name for run in runs)
    names = [f"{one.name} {one.run_id[:8]}" if counts[one.name] > 1 else one.name for one in runs]
    columns = {name: None for run in runs for name in run.cells}
    rows = [
        (number, (name, *(run.cells.get(column, "") for column in columns)))
        for number, (name, run) in enumerate(zip(names, runs, strict=True), start=1)
    ]
    named = path if path.name else path.resolve()
    table = table_of(named, 1, ("run", *columns), rows)
    return table._replace(notes=tuple(_notes(path, found)))


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
    status, start, end = (meta.get(name) for name in ("status", "start_time", "end_time"))
    state = _STATES.get(status, "") if isinstance(status, int) else str(status or "")
    cells = {"state": state, "wall_s": ""}
    if isinstance(start, int) and isinstance(end, int) and 0 < start < end:
        cells["wall_s"] = str((end - start) / 1000)
    for name, path in _files(folder / "params"):
        cells[f"params.{name}"] = " ".join(_text(path).split())
    omitted = []
    for name, path in _files(folder / "metrics"):
        values = _values(path)
        finite = [value for value in values if isfinite(value)]
        if len(finite) < len(values):
            omitted.append(str(path))
        # A loss that ends as NaN has no last value.
        if finite and (isfinite(values[-1]) or plain_name(name) in _OF_STEPS):
            value = max(finite) if plain_name(name) == "memory" else finite[-1]
            if plain_name(name) in _OF_STEPS:
                value = median(finite[1:] or finite)
            cells[f"metrics.{name}"] = repr(value)
    return _Run(str(meta.get("run_name") or run_id), run_id, cells, tuple(omitted))


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


# JSON lines, or a JSON array of objects -> the columns and rows of a table of results.
#
# Objects within objects become columns `outer.inner`. The columns are those of all rows, in the
# order in which they appear. An object of columns, `{"nodes": {"0": 1, "1": 2}}`, is what pandas
# writes unless told otherwise.

# Limit of cells, because each row gets a cell of each column.
_MOST_CELLS = 100_000_000
_DEEPEST = 20
_KEY = re.compile(r'"([^"\\]{1,200})"\s*:')
# Only the first column of many rows stands in the head.
_COLUMN = re.compile(r'\A\s*\{\s*"[^"\\]{1,200}"\s*:\s*\{\s*"0"\s*:\s*[^\s{\[]')
_ROWS = "write one object for each job: a line each, or in an array"
_BLANK = " \t\r\n"
_Decode = Callable[[str, int], tuple[Any, int]]


def is_json_of_results(head: str) -> bool:
    """Whether the first object has the columns of a table of results; `head` is how it begins.

    An array without rows is a table; reading it names what is missing.
    """
    if head.split(maxsplit=2) in (["[]"], ["[", "]"]) or _BENCHMARKS.match(head):
        return True
    rows = _rows(head)
    try:
        _, first = next(rows)
        names = tuple(_cells(first)) if isinstance(first, dict) else ()
    except StopIteration:
        return False
    except ValueError:
        # It is longer than the head, or reading it names what is wrong.
        if _COLUMN.match(head):
            return True
        names = tuple(_KEY.findall(head.partition("}")[0]))
    return names_a_result(names, sized=True)


def parse_json(path: Path, text: str) -> ResultTable:
    """Read a table.

    Raises:
        LogParseError: it is not valid JSON, a row is not an object or repeats a key, or there are
            too many columns.
    """
    if _BENCHMARKS.match(text[:_HEAD]):
        raise LogParseError(
            f"{path}: a file of Google Benchmark, which states no size of a job",
            f"a table with a row for each size: {EXAMPLE}",
        )
    names: dict[str, int] = {}
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        for line, value in _rows(text):
            rows.append((line, _row(f"{path}:{line}", value)))
            for name in rows[-1][1]:
                names.setdefault(name, len(names))
    except json.JSONDecodeError as failure:
        message = f"{path}:{failure.lineno}: not valid JSON: {failure.msg}"
        raise LogParseError(message, _ROWS) from None
    if not rows:
        raise LogParseError(f"{path}: empty", _ROWS)
    if len(names) * len(rows) > _MOST_CELLS:
        raise LogParseError(
            f"{path}: {len(rows)} rows with {len(names)} different keys in all",
            "give all rows the same keys",
        )
    cells = ((at, [row.get(name, "") for name in names]) for at, row in rows)
    return table_of(path, rows[0][0], tuple(names), cells)


def _row(where: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise LogParseError(f"{where}: {json.dumps(value)[:40]} is not an object", _ROWS)
    try:
        return _cells(value)
    except ValueError as wrong:
        raise LogParseError(f"{where}: {wrong}", _ROWS) from None


def _rows(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the value of each row, with the line on which it begins."""
    objects = _objects(text)
    first = next(objects, None)
    second = next(objects, None)
    if first is not None and second is None and isinstance(first[1], dict):
        line, columns = first[0], list(first[1].values())
        if columns and all(isinstance(one, dict) for one in columns):
            numbers = columns[0].keys()
            if all(one.keys() == numbers for one in columns) and all(map(str.isdecimal, numbers)):
                for number in numbers:
                    yield line, {name: column[number] for name, column in first[1].items()}
                return
    yield from chain(filter(None, (first, second)), objects)


def _objects(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of lines or of an array, with the line on which they begin."""
    decode = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys).raw_decode
    position = _next(text, 0)
    in_array = text[position : position + 1] == "["
    line, counted = 1, 0
    position = _next(text, position + 1) if in_array else position
    while position < len(text) and not (in_array and text[position] == "]"):
        line, counted = line + text.count("\n", counted, position), position
        value, position = _decoded(decode, text, position)
        yield line, value
        position = _next(text, position)
        if in_array and text[position : position + 1] not in (",", "]"):
            raise json.JSONDecodeError("Expecting ',' or ']'", text, position)
        if in_array and text[position] == ",":
            position = _next(text, position + 1)
    if in_array and position >= len(text):
        raise json.JSONDecodeError("the array has no end", text, len(text))


def _decoded(decode: _Decode, text: str, position: int) -> tuple[Any, int]:
    try:
        return decode(text, position)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as failure:
        raise json.JSONDecodeError(str(failure), text, position) from None


def _next(text: str, position: int) -> int:
    """Return the position of the next character that is not blank."""
    while text[position : position + 1] in tuple(_BLANK):
        position += 1
    return position


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in an object")
    return found


def _cells(row: dict[str, Any], before: str = "", depth: int = 0) -> dict[str, str]:
    """Return the cells of a row by the names of their columns.

    Raises:
        ValueError: there are too many objects within one another.
    """
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} objects within one another")
    cells: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            cells |= _cells(value, f"{before}{name}.", depth + 1)
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            cells[before + name.strip()] = "" if value is None else text.strip()
    return cells
