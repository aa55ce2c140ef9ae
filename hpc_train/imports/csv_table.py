"""A CSV file of another program -> its columns and rows, each with its line, and its numbers."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.binary_kinds import BINARY, START, binary_kind
from hpc_train.errors import LogParseError
from hpc_train.imports.exported_headings import names_a_result

if TYPE_CHECKING:
    from hpc_train.imports.csv_lines import Places

_REPORT_COLUMNS = frozenset({"series", "n_ok", "n_submitted", "is_baseline"})
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SEPARATORS = ",;\t|"
_COMMENT = ("# ", "##", "#,", "#;", "#\t", "#|")
# The first line that Excel reads the separator from; the header shows it as well.
_SEP = re.compile(r'\ufeff?"?sep="?[,;\t|]?"?[,;\t| ]*[\r\n]*', re.IGNORECASE)
# A line that is no row, or may be none: empty cells, a comment, `sep=`, or other blank characters.
_UNUSUAL = re.compile(rb"\n[ \t,;|\v\f\x1c-\x1f]*(?:#|sep=|[\x80-\xff]|\n|\Z)", re.IGNORECASE)
_MAYBE = re.compile(rb"[ \t,;|\v\f\x1c-\x1f#sS\x80-\xff\n]")
_EXAMPLE = "nodes,gpus_per_node,global_batch_size,samples_per_second"


class ResultTable(NamedTuple):
    """Names as they are written, with their line, and the rows as CSV, with the line of each.

    `body` has one row of cells for each of `lines`, without comments and empty rows, and is UTF-8.
    `notes` state how the cells were computed.
    """

    path: Path
    line: int
    names: tuple[str, ...]
    lines: Sequence[int]
    body: bytes = b""
    separator: str = ","
    notes: tuple[str, ...] = ()

    def where(self, row: int) -> str:
        """Return the place of a row: file:line."""
        return f"{self.path}:{self.lines[row]}"

    def row(self, row: int) -> tuple[str, ...]:
        """Return the cells of one row, counted from 0."""
        return next(islice(self._cells(), row, None))

    @property
    def rows(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Return the line and the cells of each row."""
        return tuple(zip(self.lines, self._cells(), strict=True))

    def _cells(self) -> Iterator[tuple[str, ...]]:
        text = io.StringIO(self.body.decode(), "")
        for cells in csv.reader(text, delimiter=self.separator, strict=True):
            yield tuple(cell.strip() for cell in cells)


def table_of(
    path: Path, line: int, names: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]]
) -> ResultTable:
    """Return the table of rows of cells, each with its line."""
    lines: list[int] = []
    body = io.StringIO()
    writer = csv.writer(body, lineterminator="\n")
    for number, cells in rows:
        lines.append(number)
        writer.writerow(cells)
    # JSON may contain characters that a text file cannot.
    text = body.getvalue().replace("\0", "\ufffd").encode("utf-8", "replace")
    return ResultTable(path, line, tuple(names), lines, text)


def is_csv_of_results(name: str, head: bytes) -> bool:
    """Whether a header names a size or a result, and is not that of a training's log.

    `name` is that of the file, `head` its first bytes.
    """
    if name == "metrics.csv":
        return False
    if head[:2] in _UTF16:
        head = head.decode("utf-16", "replace").encode()
    if b"\0" in head or not head.strip():
        return True
    first = _first(head.decode("utf-8-sig", "replace"))
    return names_a_result([name.strip('" ') for name in first.split(_separator(first))])


def parse_csv(path: Path, raw: bytes) -> ResultTable:
    """Read a table from the bytes of a file.

    A byte order mark (UTF-16 needs one), CRLF, and `;`, tabs or `|` between cells are accepted.

    Raises:
        LogParseError: it is empty, no such text, has rows of different lengths, or is a report.
    """
    # Numpy is imported where it is needed, so that errors are reported at once.
    from hpc_train.imports.csv_lines import begins_with, line_ends

    content = _content(path, raw)
    ends = line_ends(content)
    usual = b'"' not in content and not (
        begins_with(content, ends, _MAYBE) and _UNUSUAL.search(b"\n" + content)
    )
    table = _split(path, content, ends) if usual else _parsed(path, content.decode())
    if not table.lines:
        where = f"{path}:{table.line}"
        raise LogParseError(f"{where}: a header, and no row below it", "one row for each job")
    return table


def _split(path: Path, content: bytes, ends: Places) -> ResultTable:
    """Return a table whose lines are its rows: without quotes, comments and empty lines."""
    from hpc_train.imports.csv_lines import line_of_other_length

    header, below, body = content.partition(b"\n")
    separator = _separator(header.decode())
    names = _header(path, 1, header.decode().split(separator))
    wrong = line_of_other_length(body, ends[1:] - len(header) - 1, separator, len(names) - 1)
    if below and wrong is not None:
        cells = body.split(b"\n")[wrong].count(separator.encode()) + 1
        raise _wrong_length(f"{path}:{wrong + 2}", cells, names)
    return ResultTable(path, 1, names, range(2, len(ends) + 2), body, separator)


def _parsed(path: Path, text: str) -> ResultTable:
    """Return a table of any form that CSV allows."""
    rows = _rows(path, text)
    header = next(rows, None)
    if header is None:
        raise LogParseError(f"{path}: empty", f"a header and a row for each job: {_EXAMPLE}")
    names = _header(path, *header)
    return table_of(path, header[0], names, _of_length(path, rows, names))


def _header(path: Path, line: int, cells: Sequence[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in cells)
    if _REPORT_COLUMNS.issubset(names):
        raise LogParseError(
            f"{path}:{line}: this is a report that hpctrain wrote, with one row for each point",
            "give the study, the logs, or a table with one row for each job",
        )
    return names


def _of_length(
    path: Path, rows: Iterable[tuple[int, list[str]]], names: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    for number, cells in rows:
        if len(cells) != len(names):
            raise _wrong_length(f"{path}:{number}", len(cells), names)
        yield number, [cell.strip() for cell in cells]


def _content(path: Path, raw: bytes) -> bytes:
    """Return the bytes of UTF-8 text without a byte order mark; lines end in LF."""
    if raw[:2] in _UTF16:
        raw = _as_utf8(path, raw)
    try:
        # Most tables are ASCII, which is known without a copy.
        _ = raw.isascii() or raw.decode()
    except UnicodeDecodeError as failure:
        raise _not_text(
            path, raw, failure.start, f"not UTF-8 text (byte {failure.start})"
        ) from None
    if b"\0" in raw:
        raise _not_text(path, raw, raw.index(b"\0"), "not text: a NUL byte")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw.removesuffix(b"\n")


def _not_text(path: Path, raw: bytes, place: int, what: str) -> LogParseError:
    """Return the error for a byte that no text has; a file of another kind is named."""
    kind = binary_kind(raw[:START], path.suffix)
    if kind not in ("", BINARY):
        return LogParseError(f"{path}: {kind}")
    line = raw[:place].count(b"\n") + 1
    return LogParseError(f"{path}:{line}: {what}", "save it as CSV in UTF-8")


def _as_utf8(path: Path, raw: bytes) -> bytes:
    """Return UTF-16 text with a byte order mark, as Excel saves "Unicode Text", in UTF-8."""
    try:
        return raw.decode("utf-16").encode()
    except UnicodeDecodeError as failure:
        message = f"{path}: not UTF-16 text (byte {failure.start}: {failure.reason})"
        raise LogParseError(message, "save it as CSV in UTF-8") from None


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
    lines = (line for line in io.StringIO(text, None) if line.strip())
    return next((line for line in lines if not is_comment(line)), "")


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


def _wrong_length(where: str, cells: int, names: Sequence[str]) -> LogParseError:
    more = cells > len(names)
    comma = "; a decimal comma is not allowed: write 1.5, not 1,5" if more else ""
    return LogParseError(
        f"{where}: {cells} cells, but the header has {len(names)} columns{comma}",
        "put a cell that contains the separator in quotes",
    )
