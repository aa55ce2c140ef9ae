"""A CSV file of another program -> its columns and rows, each with its line, and its numbers."""

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
from hpc_train.logs import record as vocabulary

PREFIXED = re.compile(r"(metrics|summary|params|config|tags)[./](.+)", re.IGNORECASE)
_OF_RESULTS = ("metrics", "summary")
# The columns that the page of a project of Weights & Biases always exports.
_OF_PROJECT = frozenset({"name", "state", "created", "runtime"})
_WALL = "wall_s"
# A row for each step of one run.
_OF_HISTORY = frozenset({"_step", "step", "epoch"})


def plain_headings(names: Sequence[str]) -> tuple[str, ...]:
    """Return the headings without prefixes, empty for a column that states nothing of a run.

    A metric of a tracker that hpctrain does not know is a result, and no axis.
    """
    plain = [_plain(name.strip()) for name in names]
    if _OF_PROJECT.issubset(word.lower() for word in plain):
        words = {"runtime": _WALL, _WALL: ""}
        plain = [words.get(word.lower(), "" if "/" in word else word) for word in plain]
    return tuple(plain)


def is_history(names: Sequence[str]) -> bool:
    """Whether a header is that of a log with a row for each step or epoch, and states no size."""
    bare = {name.strip().lower() for name in names}
    return not _OF_HISTORY.isdisjoint(bare) and not states_a_size(names)


def states_a_size(names: Sequence[str]) -> bool:
    """Whether a column is a size of a job."""
    return any(vocabulary.plain_name(name) in vocabulary.SIZES for name in plain_headings(names))


def names_a_result(names: Sequence[str], *, sized: bool = False) -> bool:
    """Whether a header is that of a table of results: it names a size or a result of a job.

    `sized`: it must name both, as only the first row of a table without a header can tell.
    """
    if is_history(names):
        return False
    known = (*vocabulary.SIZES, *vocabulary.RESULTS)
    plain = list(map(vocabulary.plain_name, plain_headings(names)))
    if sized:
        results = {*vocabulary.RESULTS, *vocabulary.RATES_PER_GPU, *vocabulary.ASSUMED}
        return not results.isdisjoint(plain) and states_a_size(names)
    return any(
        n in known or n in vocabulary.ASSUMED or vocabulary.misspelt(n, known) for n in plain
    )


def _plain(name: str) -> str:
    if name.startswith("_"):
        return _WALL if name == "_runtime" else ""
    match = PREFIXED.fullmatch(name)
    if match is None:
        return name
    kind, rest = match[1].lower(), match[2].strip()
    if kind == "tags":
        return ""
    known = vocabulary.plain_name(rest)
    return (
        rest
        if kind not in _OF_RESULTS or known in vocabulary.KNOWN or known in vocabulary.ASSUMED
        else ""
    )


_REPORT_COLUMNS = frozenset({"series", "n_ok", "n_submitted", "is_baseline"})
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SEPARATORS = ",;\t|"
_COMMENT = ("# ", "##", "#,", "#;", "#\t", "#|")
# The first line that Excel reads the separator from; the header shows it as well.
_SEP = re.compile(r'\ufeff?"?sep="?[,;\t|]?"?[,;\t| ]*[\r\n]*', re.IGNORECASE)
_NUMBER_OF = re.compile(r"# of (?:gpus|nodes|ranks|tasks)\b", re.IGNORECASE)
# The line below the header of a Markdown table, as JUBE prints one, too.
_RULE = re.compile(r"^\s*(?:\|\s*)?:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+(?:\|\s*)?")
# Lines before it.
_BEFORE = 200
EXAMPLE = "nodes,gpus_per_node,global_batch_size,samples_per_second"


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


def table_of(
    path: Path, line: int, names: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]]
) -> ResultTable:
    """Return the table of rows of cells, each with its line."""
    # JSON may contain characters that a text file cannot.
    plain = [
        (number, tuple(cell.replace("\0", "\ufffd").strip() for cell in cells))
        for number, cells in rows
    ]
    return ResultTable(path, line, tuple(names), tuple(plain))


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


def is_text_of_results(head: str) -> bool:
    """Whether a text is a table in Markdown or with blanks between cells, and not a log.

    Its header has to name a size and a result, and a row of as many cells has to follow.
    """
    rows = (cells for _, cells in _lined(head) or _blank_separated(head))
    header, first = next(rows, []), next(rows, [])
    is_row = len(first) == len(header) > 1 and first[0].strip()[:1].isdecimal()
    return is_row and names_a_result(header, sized=True)


def parse_csv(path: Path, raw: bytes) -> ResultTable:
    """Read a table from the bytes of a file.

    A byte order mark (UTF-16 needs one), CRLF, and `;`, tabs, `|` or blanks between cells are
    accepted; around a table in Markdown, or of JUBE, there may be other lines.

    Raises:
        LogParseError: it is empty, no such text, has rows of different lengths, or is a report.
    """
    text = _content(path, raw)
    rows = _rows(path, text)
    header = next(rows, None)
    if header is None:
        raise LogParseError(f"{path}: empty", f"a header and a row for each job: {EXAMPLE}")
    names = tuple(name.strip() for name in header[1])
    if _REPORT_COLUMNS.issubset(names):
        raise LogParseError(
            f"{path}:{header[0]}: this is a report that hpctrain wrote, with one row for each "
            "point",
            "give the study, the logs, or a table with one row for each job",
        )
    kept = list(rows)
    for number, cells in kept:
        if len(cells) != len(names):
            more = len(cells) > len(names)
            comma = "; a decimal comma is not allowed: write 1.5, not 1,5" if more else ""
            raise LogParseError(
                f"{path}:{number}: {len(cells)} cells, but the header has {len(names)} columns"
                f"{comma}",
                "put a cell that contains the separator in quotes",
            )
    table = table_of(path, header[0], names, kept)
    if not table.rows:
        where = f"{path}:{table.line}"
        raise LogParseError(f"{where}: a header, and no row below it", "one row for each job")
    return table._replace(separator=_separator(_first(text)))


def _content(path: Path, raw: bytes) -> str:
    """Return UTF-8 text without a byte order mark; lines end in LF."""
    try:
        raw = raw.decode("utf-16").encode() if raw[:2] in _UTF16 else raw
    except UnicodeDecodeError as failure:
        message = f"{path}: not UTF-16 text (byte {failure.start}: {failure.reason})"
        raise LogParseError(message, "save it as CSV in UTF-8") from None
    try:
        text = raw.decode()
    except UnicodeDecodeError as failure:
        raise _not_text(
            path, raw, failure.start, f"not UTF-8 text (byte {failure.start})"
        ) from None
    if b"\0" in raw:
        raise _not_text(path, raw, raw.index(b"\0"), "not text: a NUL byte")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def _not_text(path: Path, raw: bytes, place: int, what: str) -> LogParseError:
    """Return the error for a byte that no text has; a file of another kind is named."""
    kind = binary_kind(raw[:START], path.suffix)
    if kind not in ("", BINARY):
        return LogParseError(f"{path}: {kind}")
    line = raw[:place].count(b"\n") + 1
    return LogParseError(f"{path}:{line}: {what}", "save it as CSV in UTF-8")


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells, without empty rows and comments."""
    first = _first(text)
    delimiter = _separator(first)
    lined = _lined(text)
    if lined or (delimiter not in first and is_text_of_results(text)):
        yield from lined or _blank_separated(text)
        return
    reader = csv.reader(io.StringIO(text, None), delimiter=delimiter, strict=True)
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if any(cell.strip() for cell in cells) and not is_comment(delimiter.join(cells)):
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
    text = line.lstrip('\ufeff" \t')
    is_comment = text.startswith(_COMMENT) and not _NUMBER_OF.match(text)
    return bool(_SEP.fullmatch(line)) or is_comment


def _first(text: str) -> str:
    """Return the line of the header, before the cells are split."""
    lines = (line for line in io.StringIO(text, None) if line.strip())
    return next((line for line in lines if not is_comment(line)), "")


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)
