"""A CSV file of another program -> its columns and rows, each with its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hpc_train.errors import LogParseError
from hpc_train.model.result_columns import AMBIGUOUS, RESULTS, SIZES, misspelt, plain_name

_FIRST = 64 * 1024
_REPORT_COLUMNS = frozenset({"series", "n_ok", "n_submitted", "is_baseline"})
_SEPARATORS = ",;\t"
_COMMENT = ("# ", "##", "#,", "#;", "#\t")
_EXAMPLE = "nodes,gpus_per_node,global_batch_size,samples_per_second"


class ResultTable(NamedTuple):
    """Names as they are written, with their line, and the cells of each row after its line."""

    path: Path
    line: int
    names: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def is_result_table(path: Path) -> bool:
    """Whether a CSV file's header names a size or a result, and is not that of a training's log."""
    if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
        return False
    with path.open("rb") as stream:
        raw = stream.read(_FIRST)
    if path.name == "metrics.csv":
        return False
    if b"\0" in raw or raw[:2] in (b"\xff\xfe", b"\xfe\xff") or not raw.strip():
        return True
    first = _first(raw.decode("utf-8-sig", "replace"))
    names = [plain_name(name.strip('" ')) for name in first.split(_separator(first))]
    # Logs of Lightning and timm have a row for each epoch or step.
    if "epoch" in names or "step" in names:
        return False
    known = (*SIZES, *RESULTS)
    return any(n in known or n in AMBIGUOUS or misspelt(n, known) for n in names)


def read_table(path: Path) -> ResultTable:
    """Read a table; a byte order mark, CRLF, and `;` or tabs between cells are accepted.

    Raises:
        LogParseError: it is empty, not UTF-8, has rows of different lengths, or is a report.
    """
    rows = _rows(path, _text(path))
    header = next(rows, None)
    if header is None:
        raise LogParseError(f"{path}: empty", f"a header and a row for each job: {_EXAMPLE}")
    line, names = header
    names = [name.strip() for name in names]
    if _REPORT_COLUMNS.issubset(names):
        raise LogParseError(
            f"{path}:{line}: this is a report that hpctrain wrote, with one row for each point",
            "give the study, the logs, or a table with one row for each job",
        )
    kept = []
    for number, cells in rows:
        if len(cells) != len(names):
            raise _wrong_length(f"{path}:{number}", cells, names)
        kept.append((number, tuple(cell.strip() for cell in cells)))
    if not kept:
        raise LogParseError(f"{path}:{line}: a header, and no row below it", "one row for each job")
    return ResultTable(path, line, tuple(names), tuple(kept))


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise LogParseError(f"{path}: UTF-16 text", "save it as CSV in UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = raw[: failure.start].count(b"\n") + 1
        message = f"{path}:{line}: not UTF-8 text (byte {failure.start})"
        raise LogParseError(message, "save it as CSV in UTF-8") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise LogParseError(f"{path}:{line}: not text: a NUL byte", "save it as CSV in UTF-8")
    return text


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells, without empty rows and comments."""
    delimiter = _separator(_first(text))
    reader = csv.reader(io.StringIO(text, None), delimiter=delimiter, strict=True)
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if any(cell.strip() for cell in cells) and not is_comment(delimiter.join(cells)):
                yield line, cells
    except csv.Error as failure:
        raise LogParseError(f"{path}:{reader.line_num}: not valid CSV: {failure}") from None


def is_comment(line: str) -> bool:
    """Whether a line is a comment: `# like this`; `#GPUs` is a heading."""
    return line.lstrip('\ufeff" \t').startswith(_COMMENT)


def _first(text: str) -> str:
    """Return the line of the header, before the cells are split."""
    lines = (line for line in text.splitlines() if line.strip())
    return next((line for line in lines if not is_comment(line)), "")


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


def _wrong_length(where: str, cells: list[str], names: list[str]) -> LogParseError:
    more = len(cells) > len(names)
    comma = "; a decimal comma is not allowed: write 1.5, not 1,5" if more else ""
    return LogParseError(
        f"{where}: {len(cells)} cells, but the header has {len(names)} columns{comma}",
        "put a cell that contains the separator in quotes",
    )
