"""A CSV file of another program -> its columns and rows, each with its line, and its numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from hpc_train.errors import LogParseError
from hpc_train.imports.exported_headings import names_a_result

_REPORT_COLUMNS = frozenset({"series", "n_ok", "n_submitted", "is_baseline"})
_SEPARATORS = ",;\t"
_COMMENT = ("# ", "##", "#,", "#;", "#\t")
# The first line that Excel reads the separator from; the header shows it as well.
_SEP = re.compile(r'\ufeff?"?sep="?[,;\t]?"?[,;\t ]*[\r\n]*', re.IGNORECASE)
_EXAMPLE = "nodes,gpus_per_node,global_batch_size,samples_per_second"
ABSENT = frozenset({"", "-", "--", "NA", "N/A", "n/a", "null", "None"})
MOST = 1e100
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,_' \u00a0\u202f.][0-9]{3})+(?:[.,][0-9]+)?")
_COMMA = re.compile(r"^[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_WITH_UNIT = re.compile(rf"^(?P<number>{_NUMBER.pattern})\s*(?P<unit>[^\W\d_].*|%.*|/.*)")


class ResultTable(NamedTuple):
    """Names as they are written, with their line, and the cells of each row after its line.

    `notes` state how the cells were computed.
    """

    path: Path
    line: int
    names: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    notes: tuple[str, ...] = ()


def is_csv_of_results(name: str, head: bytes) -> bool:
    """Whether a header names a size or a result, and is not that of a training's log.

    `name` is that of the file, `head` its first bytes.
    """
    if name == "metrics.csv":
        return False
    if b"\0" in head or head[:2] in (b"\xff\xfe", b"\xfe\xff") or not head.strip():
        return True
    first = _first(head.decode("utf-8-sig", "replace"))
    return names_a_result([name.strip('" ') for name in first.split(_separator(first))])


def parse_csv(path: Path, raw: bytes) -> ResultTable:
    """Read a table from the bytes of a file.

    A byte order mark, CRLF, and `;` or tabs between cells are accepted.

    Raises:
        LogParseError: it is empty, not UTF-8, has rows of different lengths, or is a report.
    """
    rows = _rows(path, _text(path, raw))
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


def _text(path: Path, raw: bytes) -> str:
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
    """Whether a line is a comment: `# like this`; `#GPUs` is a heading, and `sep=;` Excel's."""
    return bool(_SEP.fullmatch(line)) or line.lstrip('\ufeff" \t').startswith(_COMMENT)


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


def number(text: str, unit: str) -> float:
    """Return the number in a cell; `unit` is the one that its column is in.

    Raises:
        ValueError: the cell is not a finite number; the message gives the reason.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        raise ValueError(_why(text, unit))
    value = float(text)
    if not isfinite(value) or abs(value) > MOST:
        raise ValueError(f"{text} is too large for a measurement; at most {MOST:g}")
    return value


def whole(text: str, least: int) -> int:
    """Return the whole number in a cell.

    Raises:
        ValueError: it is not a whole number, or smaller than `least`.
    """
    value = number(text, "1")
    if value != int(value) or not least <= value <= 10**9:
        raise ValueError(f"{text.strip()} must be a whole number from {least} up")
    return int(value)


def _why(text: str, unit: str) -> str:
    if _NOT_FINITE.fullmatch(text):
        return f"{text!r} is not a measurement; leave the cell empty if nothing was measured"
    if _COMMA.fullmatch(text):
        return _comma(text)
    if _GROUPED.fullmatch(text):
        return f"{text!r} has thousands separators; write the digits without them"
    suffixed = _WITH_UNIT.fullmatch(text)
    if suffixed and suffixed["unit"].startswith("%"):
        return f"{text!r} is in percent; write a number without a unit, a fraction of 1"
    if suffixed:
        column = f"the column is in {unit}" if unit != "1" else "the column has no unit"
        return f"{text!r} has the unit {suffixed['unit']!r}; write a number alone, {column}"
    return f"{text[:40]!r} is not a number"


def _comma(text: str) -> str:
    point = text.replace(",", ".")
    if _GROUPED.fullmatch(text) and not text.lstrip("+-").startswith("0"):
        both = f"{point} or {text.replace(',', '')}"
        return f"{text!r} has a decimal comma, or a thousands separator; write {both}"
    return f"{text!r} has a decimal comma; write {point} with a point"
