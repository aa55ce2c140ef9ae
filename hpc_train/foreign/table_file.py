"""A file -> whether it is a table of results, and its columns and rows, whatever its kind.

CSV and JSON may be compressed; the bytes decide, not the extension. A folder of MLflow is a table.
Of an Excel workbook only stored values are read: it keeps the last value of a formula.
"""

import codecs
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.base.extras import need
from hpc_train.base.files import (
    BINARY,
    LARGEST,
    START,
    binary_kind,
    is_folder,
    is_regular,
    open_stream,
)
from hpc_train.base.yamlfile import read
from hpc_train.foreign.header import names_a_result
from hpc_train.logs.log_file import COMPRESSED_START, DAMAGE, UNPACK, packed_kind
from hpc_train.logs.record import plain_name

_REPORT_COLUMNS = frozenset({"series", "n_ok", "n_submitted", "is_baseline"})
_SEPARATORS = ",;\t|"
_COMMENT = ("# ", "##", "#,", "#;", "#\t", "#|")
# The first line that Excel reads the separator from; the header shows it as well.
_SEP = re.compile(r'"?sep="?[,;\t|]?"?[,;\t| ]*\n?', re.IGNORECASE)
_NUMBER_OF = re.compile(r"# of (?:gpus|nodes|ranks|tasks)\b", re.IGNORECASE)
# The line below the header of a Markdown table, as JUBE prints one, too.
_RULE = re.compile(r"^\s*(?:\|\s*)?:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+(?:\|\s*)?")
# Lines before it.
_BEFORE = 200
EXAMPLE = "nodes,gpus_per_node,global_batch_size,samples_per_second"
Rows = Iterable[tuple[int, Sequence[str]]]


class ResultTable(NamedTuple):
    """Names as they are written, with their line, and the line and the cells of each row.

    `notes` state how the cells were computed. `separator` is that of a CSV file.
    """

    path: Path
    line: int
    names: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    notes: tuple[str, ...] = ()
    separator: str = ""

    def where(self, row: int) -> str:
        """Return the place of a row: file:line."""
        return f"{self.path}:{self.rows[row][0]}"


def table_of(path: Path, rows: Rows, separator: str = "") -> ResultTable:
    """Return the table of rows of cells, each with its line; the first one is the header.

    Raises:
        LogParseError: there is no row, rows have different lengths, or it is a report.
    """
    # JSON may contain characters that a text file cannot.
    plain = [
        (number, tuple(cell.replace("\0", "\ufffd").strip() for cell in cells))
        for number, cells in rows
    ]
    if not plain:
        raise LogParseError(f"{path}: empty", f"a header and a row for each job: {EXAMPLE}")
    (line, names), *others = plain
    if _REPORT_COLUMNS.issubset(names):
        raise LogParseError(
            f"{path}:{line}: this is a report that hpctrain wrote, with one row for each point",
            "give the study, the logs, or a table with one row for each job",
        )
    if not others:
        raise LogParseError(f"{path}:{line}: a header, and no row below it", "one row for each job")
    for number, cells in others:
        if len(cells) != len(names):
            more = len(cells) > len(names)
            comma = "; a decimal comma is not allowed: write 1.5, not 1,5" if more else ""
            raise LogParseError(
                f"{path}:{number}: {len(cells)} cells, but the header has {len(names)} columns"
                f"{comma if separator else ''}",
                "put a cell that contains the separator in quotes; the first row is the header: "
                "begin lines above it with `# `"
                if separator
                else "the first row is the header: remove rows above it and cells beside it",
            )
    return ResultTable(path, line, names, tuple(others), separator=separator)


def is_csv_of_results(head: str) -> bool:
    """Whether a header names a size or a result, and is not that of a training's log."""
    if "\0" in head or not head.strip():
        return True
    first = _first(head)
    return names_a_result([name.strip('" ') for name in first.split(_separator(first))])


def is_text_of_results(head: str) -> bool:
    """Whether a text is a table in Markdown or with blanks between cells, and not a log.

    Its header has to name a size and a result, and a row of as many cells has to follow.
    """
    rows = (cells for _, cells in _lined(head) or _blank_separated(head))
    header, first = next(rows, []), next(rows, [])
    is_row = len(first) == len(header) > 1 and first[0].strip()[:1].isdecimal()
    return is_row and names_a_result(header, sized=True)


def decoded(raw: bytes) -> str:
    """Return text in UTF-8, or UTF-16 with a byte order mark; its lines end in LF."""
    is_utf16 = raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    text = raw.decode("utf-16" if is_utf16 else "utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def checked_text(path: Path, raw: bytes) -> str:
    """Return the text of a file.

    Raises:
        LogParseError: it is a file of another kind, or has bytes that no text has.
    """
    text = decoded(raw)
    if wrong := re.search("[\0\ufffd]", text):
        kind = binary_kind(raw[:START])
        if kind not in ("", BINARY):
            raise LogParseError(f"{path}: {kind}")
        line = text.count("\n", 0, wrong.start()) + 1
        raise LogParseError(f"{path}:{line}: not text in UTF-8", "save it as CSV in UTF-8")
    return text


def parse_csv(path: Path, text: str) -> ResultTable:
    """Read a table; `;`, tabs, `|` or blanks may be between cells.

    Around a table in Markdown, or of JUBE, there may be other lines.

    Raises:
        LogParseError: it is not valid CSV, or is no table.
    """
    first = _first(text)
    separator = _separator(first)
    rows: Rows = _lined(text)
    if not rows:
        is_blank = separator not in first and is_text_of_results(text)
        rows = _blank_separated(text) if is_blank else _csv_rows(path, text, separator)
    return table_of(path, rows, separator)


def _csv_rows(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells, without empty rows and comments."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if any(cell.strip() for cell in cells) and not is_comment(separator.join(cells)):
                yield line, cells
    except csv.Error as failure:
        raise LogParseError(f"{path}:{reader.line_num}: not valid CSV: {failure}") from None


def _lined(text: str) -> list[tuple[int, list[str]]]:
    """Return line and cells of the first Markdown table; none if there is none."""
    head = islice(io.StringIO(text), _BEFORE)
    rule = next((n for n, line in enumerate(head) if n and _RULE.fullmatch(line)), 0)
    if not rule or "|" not in (lines := text.split("\n"))[rule - 1]:
        return []
    below = takewhile(lambda n: "|" in lines[n], range(rule + 1, len(lines)))
    return [
        (n + 1, lines[n].strip().removeprefix("|").removesuffix("|").split("|"))
        for n in (rule - 1, *below)
    ]


def _blank_separated(text: str) -> list[tuple[int, list[str]]]:
    """Return line and cells of a table with blanks; its header may begin with `#`, as gnuplot's."""
    numbered = [(n, line.split()) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if numbered and numbered[0][1][0] == "#":
        numbered[0][1].pop(0)
    return [(n, cells) for n, cells in numbered if cells and not cells[0].startswith("#")]


def is_comment(line: str) -> bool:
    """Whether a line is a comment: `# like this`, and `sep=;` of Excel.

    `#GPUs` is a heading, and `# Nodes; img/s` a header.
    """
    text = line.lstrip('" \t')
    if not text.startswith(_COMMENT) or _NUMBER_OF.match(text):
        return bool(_SEP.fullmatch(line))
    return not names_a_result(re.split(r"[,;\t|]", text.lstrip("#")), sized=True)


def _first(text: str) -> str:
    """Return the line of the header, before the cells are split."""
    lines = (line for line in io.StringIO(text) if line.strip())
    return next((line for line in lines if not is_comment(line)), "")


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


# Of JSON, the first object has to be whole.
_HEAD, _JSON_HEAD = 64 * 1024, 1 << 20
_CSV = (".csv", ".tsv")
_JSON = (".json", ".jsonl", ".ndjson")
_TEXT = (".md", ".txt", ".dat")
_WORKBOOKS = (".xlsx", ".xlsm")


def is_result_table(path: Path) -> bool:
    """Whether a file is a table of results, by its extension and the names in its header.

    A file that cannot be read as what its extension says is one: reading it names the reason.
    """
    if path.is_dir():
        return bool(_mlflow_runs(path))
    path, _ = sheet_of(path)
    ending = _ending(path)
    if ending in _WORKBOOKS:
        return path.is_file()
    if ending not in (*_CSV, *_JSON, *_TEXT) or not path.is_file():
        return False
    try:
        head = decoded(_contents(path, _JSON_HEAD if ending in _JSON else _HEAD))
    except LogParseError:
        return ending in _CSV
    if ending in _CSV:
        # That is Lightning's log.
        return path.name.partition(".csv")[0] != "metrics" and is_csv_of_results(head)
    return is_text_of_results(head) if ending in _TEXT else is_json_of_results(head)


def read_table(path: Path) -> ResultTable:
    """Read a table of results; `FILE.xlsx:SHEET` names a sheet of a workbook.

    Raises:
        LogParseError: it cannot be read, or is not a table of results. MissingExtraError: a package
            for this kind of file is not installed.
    """
    ending = _ending(path)
    file, sheet = sheet_of(path)
    if ending in _WORKBOOKS and path.suffix.lower() in UNPACK:
        raise LogParseError(f"{path}: compressed Excel workbook", f"unpack it: {ending} is a zip")
    if sheet or ending in _WORKBOOKS:
        return _read_workbook(file, sheet)._replace(path=path)
    if path.is_dir():
        return _read_mlflow(path)
    if ending == ".parquet":
        from hpc_train.foreign.parquet import read_texts

        return table_of(path, enumerate(read_texts(path), start=1))
    raw = _contents(path, LARGEST + 1)
    if len(raw) > LARGEST:
        raise LogParseError(f"{path}: larger than {LARGEST >> 30} GiB", "split the table")
    text = checked_text(path, raw)
    is_json = ending in _JSON or (ending not in _CSV and text.lstrip()[:1] in ("{", "["))
    return parse_json(path, text) if is_json else parse_csv(path, text)


def _ending(path: Path) -> str:
    """Return the extension in lower case, without that of a compressed file."""
    name = Path(path.name.lower())
    return Path(name.stem).suffix if name.suffix in UNPACK else name.suffix


class _Source(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def _contents(path: Path, most: int) -> bytes:
    """Return at most the first `most` bytes, decompressed."""
    try:
        with open_stream(path) as file:
            # A pipe may deliver fewer bytes than asked for, and cannot be read again.
            start = _all(file, COMPRESSED_START)
            if not (kind := packed_kind(start)):
                return start + _all(file, most - len(start))
            return _all(UNPACK[kind](io.BytesIO(start + _all(file, LARGEST))), most)
    except DAMAGE as failure:
        reason = failure.strerror if isinstance(failure, OSError) and failure.strerror else failure
        raise LogParseError(f"{path}: cannot be read: {reason}") from None


def _all(file: _Source, most: int) -> bytes:
    parts = []
    while most > 0 and (part := file.read(min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def sheet_of(path: Path) -> tuple[Path, str]:
    """Return workbook and sheet of `FILE.xlsx:SHEET`; the path and no sheet of any other one."""
    file, _, sheet = str(path).rpartition(":")
    if not sheet or Path(file).suffix.lower() not in _WORKBOOKS or path.exists():
        return path, ""
    return Path(file), sheet


def _read_workbook(path: Path, sheet: str) -> ResultTable:
    """Read a sheet; it must be named if several sheets have cells."""
    need("an Excel workbook", "xlsx", "save the sheet as CSV", only=("openpyxl",))
    import pandas as pd

    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            names = [str(name) for name in book.sheet_names]
            if sheet and sheet not in names:
                raise LogParseError(
                    f"{path}: no sheet is called {sheet!r}{nearest(sheet, names)}",
                    f"sheets: {', '.join(names)}",
                )
            wanted = [sheet] if sheet else names
            cells = pd.read_excel(book, wanted, header=None, dtype=object, na_filter=False)
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, SyntaxError, EOFError) as failure:
        raise LogParseError(
            f"{path}: not a whole Excel workbook: {failure}",
            "save the sheet as CSV, and name that file",
        ) from None
    sheets = {str(name): _sheet_rows(own.to_numpy().tolist()) for name, own in cells.items()}
    found = {name: rows for name, rows in sheets.items() if rows}
    if len(found) > 1:
        raise LogParseError(
            f"{path}: {len(found)} sheets have cells: {', '.join(found)}",
            f"name one: '{path}:{next(iter(found))}'",
        )
    return table_of(path, next(iter(found.values()), []))


def _sheet_rows(rows: Iterable[list[Any]]) -> list[tuple[int, list[str]]]:
    """Return number and cells of rows, without empty rows and comments, as wide as the header."""
    found: list[tuple[int, list[str]]] = []
    for number, row in enumerate(rows, start=1):
        cells = [str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row]
        width = len(found[0][1]) if found else 0
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        if any(cell.strip() for cell in cells) and not is_comment(",".join(filter(None, cells))):
            found.append((number, cells))
    return found


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


def _mlflow_runs(path: Path) -> list[Path]:
    """Return the folders of the runs in one of all experiments, of an experiment, or of a run."""
    if is_regular(path / _META) and any(is_folder(path / name) for name in ("metrics", "params")):
        return [path]
    # Of an experiment `meta.yaml` says what it is, and that of a deleted one is hidden.
    metas = chain([path / _META], sorted(path.glob(f"[!.]*/{_META}")))
    homes = [meta.parent for meta in metas if is_regular(meta)]
    metas = chain.from_iterable(sorted(home.glob(f"[!.]*/{_META}")) for home in homes)
    return [meta.parent for meta in metas if is_regular(meta)]


def _read_mlflow(path: Path) -> ResultTable:
    """Read the runs of a folder as a table: settings as `params.NAME`, values as `metrics.NAME`.

    Times and rates are medians over the steps without the first value; others are the last value.
    """
    found = [_mlflow_run(folder) for folder in _mlflow_runs(path)]
    runs = [run for run in found if run]
    if not runs:
        raise LogParseError(f"{path}: no run in it that was not deleted", "name the folder mlruns")
    counts = Counter(run["run"] for run in runs)
    for run in runs:
        run_id = run.pop("")
        if counts[run["run"]] > 1:
            run["run"] += f" {run_id[:8]}"
    names = list(dict.fromkeys(chain.from_iterable(runs)))
    rows = [names, *([run.get(name, "") for name in names] for run in runs)]
    note = (
        f"{path}: of times and rates that were logged several times, the median without the first "
        "value; of memory the largest, of other metrics the last value"
    )
    deleted = f"; {found.count({})} deleted runs are not read" if {} in found else ""
    omitted = list(dict.fromkeys(filter(None, (run.pop(" ", "") for run in runs))))
    deleted += f"; values that are not finite are not used: {', '.join(omitted[:6])}" * bool(
        omitted
    )
    # The header is no run: row 1 is the first one.
    table = table_of(path if path.name else path.resolve(), enumerate(rows))
    return table._replace(notes=(f"{note}{deleted}.",))


def _mlflow_run(folder: Path) -> dict[str, str]:
    """Return the cells of a run by their columns, its id without one; none if it was deleted."""
    meta = read(folder / _META, LogParseError).data
    if not isinstance(meta, dict) or meta.get("lifecycle_stage") == "deleted":
        return {}
    run_id = str(meta.get("run_id") or folder.name)
    status, start, end = (meta.get(name) for name in ("status", "start_time", "end_time"))
    cells = {"run": str(meta.get("run_name") or run_id), "": run_id, "wall_s": ""}
    cells["state"] = _STATES.get(status, "") if isinstance(status, int) else str(status or "")
    if isinstance(start, int) and isinstance(end, int) and 0 < start < end:
        cells["wall_s"] = str((end - start) / 1000)
    for name, _, text in _files(folder / "params"):
        cells[f"params.{name}"] = " ".join(text.split())
    for name, path, text in _files(folder / "metrics"):
        word, values = plain_name(name), _values(path, text)
        finite = [value for value in values if isfinite(value)]
        if len(finite) < len(values) and word in (*_OF_STEPS, "memory"):
            cells[" "] = str(path)
        if word in _OF_STEPS and finite:
            values = [median(finite[1:] or finite)]
        elif word == "memory" and finite:
            values = [max(finite)]
        cells[f"metrics.{name}"] = repr(values[-1]) if values else ""
    return cells


def _files(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield the names, the paths and the texts of the files below a folder."""
    for path in filter(is_regular, sorted(folder.rglob("*"))):
        text = _contents(path, LARGEST).decode("utf-8", "replace")
        yield path.relative_to(folder).as_posix(), path, text


def _values(path: Path, text: str) -> list[float]:
    """Return the values of a metric in the order of their steps."""
    found = []
    # A last line without an end is being written.
    for number, line in enumerate(text.split("\n")[:-1], start=1):
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
# order in which they appear.

_KEY = re.compile(r'"([^"\\]{1,200})"\s*:')
_ROWS = "write one object for each job: a line each, or in an array"
_VALUE = re.compile(r"[^\s,]")


def is_json_of_results(head: str) -> bool:
    """Whether the first object has the columns of a table of results; `head` is how it begins.

    An array without rows is a table; reading it names what is missing.
    """
    if head.split() in (["[]"], ["[", "]"]):
        return True
    try:
        _, first = next(_objects(head), (0, None))
        if not isinstance(first, dict):
            return False
        names = tuple(_cells(first))
    except (ValueError, RecursionError):
        # It is longer than the head, or reading it names what is wrong.
        names = tuple(_KEY.findall(head.partition("}")[0]))
    return names_a_result(names, sized=True)


def parse_json(path: Path, text: str) -> ResultTable:
    """Read a table.

    Raises:
        LogParseError: it is not valid JSON, or a row is not an object.
    """
    names: dict[str, None] = {}
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        for line, value in _objects(text):
            if not isinstance(value, dict):
                shown = json.dumps(value)[:40]
                raise LogParseError(f"{path}:{line}: {shown} is not an object", _ROWS)
            rows.append((line, _cells(value)))
            names.update(dict.fromkeys(rows[-1][1]))
    except json.JSONDecodeError as failure:
        message = f"{path}:{failure.lineno}: not valid JSON: {failure.msg}"
        raise LogParseError(message, _ROWS) from None
    except RecursionError:
        raise LogParseError(f"{path}: too deeply nested objects", _ROWS) from None
    header = [(rows[0][0], list(names))] if rows else []
    return table_of(path, chain(header, ((n, [row.get(k, "") for k in names]) for n, row in rows)))


def _objects(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of lines or of an array, with the line on which they begin."""
    decode = json.JSONDecoder().raw_decode
    in_array = text.lstrip().startswith("[")
    position = text.index("[") + 1 if in_array else 0
    line, counted = 1, 0
    while (found := _VALUE.search(text, position)) and not (in_array and found[0] == "]"):
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        value, position = decode(text, counted)
        yield line, value
    if in_array and not found:
        raise json.JSONDecodeError("the array has no end", text, len(text))


def _cells(row: dict[str, Any], before: str = "") -> dict[str, str]:
    """Return the cells of a row by the names of their columns."""
    cells: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            cells |= _cells(value, f"{before}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            cells[before + name.strip()] = "" if value is None else text
    return cells
