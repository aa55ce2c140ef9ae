"""The text of a table of another program -> its columns and rows, each with its line."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from hpc_train.base.errors import LogParseError
from hpc_train.base.file_kinds import BINARY, START, binary_kind
from hpc_train.foreign.header import names_a_result

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
    """Whether a line is a comment: `# like this`; `#GPUs` is a heading, and `sep=;` Excel's."""
    text = line.lstrip('" \t')
    is_comment = text.startswith(_COMMENT) and not _NUMBER_OF.match(text)
    return bool(_SEP.fullmatch(line)) or is_comment


def _first(text: str) -> str:
    """Return the line of the header, before the cells are split."""
    lines = (line for line in io.StringIO(text) if line.strip())
    return next((line for line in lines if not is_comment(line)), "")


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)
