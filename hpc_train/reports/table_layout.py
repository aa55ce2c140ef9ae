"""A table and a width -> the lines of its cells: columns are left out, then cells are wrapped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace
from rich.cells import cell_len

from hpc_train.reports.report import Column, Report, ReportTable
from hpc_train.reports.words import one_line

# Together on a line: `a 0.998 [0.994, 1.00];`, `2 of 3`, `16 GPUs,` and `14 %,`.
_TOKEN = re.compile(
    r"(?:[A-Za-z]'? )?\S+ \[[^\[\]]{0,60}\]\S*"
    r"|[0-9]{1,9} of [0-9]{1,9}\b|[0-9,]{1,9} (?:GPU|node|rank)s?\b\S*|\S+(?: %\S*)?"
)
# Long words are broken here, but never inside a number.
_BREAK = re.compile(r"(?<=[_/=])(?=\S)|(?<=[;@.,:])(?=[^\d\s])|(?<=[A-Za-z]-)(?=[A-Za-z])")
_IN_NUMBER = re.compile(r"[\d.,]")
# The least width of a name, in digits.
NARROWEST = 11


class Layout(NamedTuple):
    """The shown columns, the width of each, the lines of headings and cells, and what is missing.

    `rows` has for each row the lines of each cell; `left_out` are the headings that do not fit.
    """

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    heads: tuple[Sequence[str], ...]
    rows: tuple[tuple[Sequence[str], ...], ...]
    left_out: tuple[str, ...]

    @property
    def heading_lines(self) -> list[tuple[str, ...]]:
        """The lines of all headings; one with fewer lines is aligned with the bottom."""
        deep = max(map(len, self.heads), default=0)
        return [*zip(*([""] * (deep - len(head)) + [*head] for head in self.heads), strict=True)]


class _Sized(NamedTuple):
    """A column, its texts, and its width: whole, with words and with parts of words on lines."""

    column: Column
    cells: Sequence[str]
    whole: int
    words: int
    parts: int


def places(text: str) -> int:
    """Return the columns of a terminal that a text takes: two for a Chinese character."""
    return len(text) if text.isascii() else cell_len(text)


def laid_out(table: ReportTable, width: int, gap: int) -> Layout:
    """Return a table in a width if its numbers allow; columns are `gap` apart.

    Columns with `drop` are left out first, the lowest number first; then long cells of columns
    aligned to the left are wrapped at blanks, and at last inside of words. Numbers are never cut,
    and only headings of prose are wrapped.
    """
    every = [_sized(table, place) for place in range(len(table.columns))]
    shown = _fitting(every, width, gap)
    widths = _narrowed(shown, width - gap * (len(shown) - 1))
    columns = [
        [wrapped(cell, size) if places(cell) > size else (cell,) for cell in one.cells]
        for one, size in zip(shown, widths, strict=True)
    ]
    return Layout(
        columns=tuple(one.column for one in shown),
        widths=tuple(widths),
        heads=tuple(_heading(one.column, size) for one, size in zip(shown, widths, strict=True)),
        rows=tuple(zip(*columns, strict=True)) if columns else (),
        left_out=tuple(name_of(one.column) for one in every if one not in shown),
    )


def _heading(column: Column, width: int) -> list[str]:
    stated = column.heading.split("\n")
    if not column.prose:
        return stated
    return [line for part in stated for line in wrapped(part, width)]


def name_of(column: Column) -> str:
    """Return the heading of a column on one line, without its unit or level."""
    heading = re.sub(r"(?<=/)\n", "", column.heading)
    return " ".join(heading.split("\n")).partition(" [")[0]


def all_columns(report: Report) -> Report:
    """Return the report with tables that keep every column, however wide they are."""
    tables = tuple(
        replace(table, columns=tuple(replace(column, drop=0) for column in table.columns))
        for table in report.tables
    )
    return replace(report, tables=tables)


def _sized(table: ReportTable, place: int) -> _Sized:
    column = table.columns[place]
    cells = [one_line(row[place]) for row in table.rows]
    head = max(map(places, column.heading.split("\n")))
    different = set(cells)
    whole = max([head, *map(places, different)])
    if column.align == "right":
        return _Sized(column, cells, whole, whole, whole)
    tokens = {token for cell in different for token in _TOKEN.findall(cell)}
    if column.prose:
        head = max(map(places, column.heading.split()), default=0)
    words = max([head, *map(places, tokens)])
    parts = {part for token in tokens for part in _parts(token, NARROWEST)}
    return _Sized(column, cells, whole, words, max([head, *map(places, parts)]))


def _fitting(every: Sequence[_Sized], width: int, gap: int) -> list[_Sized]:
    shown = list(every)

    def needed() -> int:
        sizes = (one.words if one.column.prose else one.whole for one in shown)
        return sum(sizes) + gap * (len(shown) - 1)

    for one in sorted((one for one in every if one.column.drop), key=lambda one: one.column.drop):
        if needed() <= width:
            break
        shown.remove(one)
    return shown


def _narrowed(shown: Sequence[_Sized], room: int) -> list[int]:
    """Return the widths: prose is wrapped first, then names, at last prose inside of words."""
    widths = [one.whole for one in shown]
    for least, prose in (("words", True), ("words", False), ("parts", False), ("parts", True)):
        lowest = [getattr(one, least) for one in shown]
        free = {i for i, one in enumerate(shown) if one.column.prose is prose}
        while (excess := sum(widths) - room) > 0:
            wide = sorted((i for i in free if widths[i] > lowest[i]), key=lambda i: -widths[i])
            if not wide:
                break
            second = widths[wide[1]] if len(wide) > 1 else 0
            first = wide[0]
            target = max(lowest[first], widths[first] - excess, min(second, widths[first] - 1))
            widths[first] = target
    return widths


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text; a number that is wider than the width stays whole."""
    lines = [""]
    for token in _TOKEN.findall(text):
        for i, part in enumerate(_parts(token, width)):
            longer = f"{lines[-1]} {part}" if i == 0 and lines[-1] else lines[-1] + part
            if lines[-1] and places(longer) > width:
                lines.append(part)
            else:
                lines[-1] = longer
    return [line.strip() for line in lines]


def tied(text: str) -> str:
    """Return a text with no-break spaces in what stays on one line, as `0.998 [0.994, 1.00]`."""
    return _TOKEN.sub(lambda token: token[0].replace(" ", "\u00a0"), text)


def _parts(token: str, width: int) -> list[str]:
    if places(token) <= width:
        return [token]
    if " " in token:
        # The parts of a token have no blank before them.
        first, *others = token.split(" ")
        return [first, *(f" {other}" for other in others)]
    return [cut for part in _BREAK.split(token) for cut in _cut(part, width)]


def _cut(part: str, width: int) -> list[str]:
    cuts = [""]
    for letter in part:
        inside = bool(cuts[-1]) and all(map(_IN_NUMBER.match, (cuts[-1][-1], letter)))
        if cuts[-1] and not inside and places(cuts[-1] + letter) > width:
            cuts.append("")
        cuts[-1] += letter
    return cuts
