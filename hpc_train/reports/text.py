"""Report -> text for a terminal: the first screen, or all of it; a table laid out in a width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec.structs import replace
from rich.cells import cell_len

from hpc_train.reports.report import (
    CAVEATS,
    MEANING,
    NOT_KNOWN,
    Column,
    Fact,
    Report,
    ReportTable,
    first_of,
    grouped,
    one_line,
)
from hpc_train.scaling.measurements import FlagCode

WIDTH = 100
NO_ROOM = "Columns that do not fit (--wide shows them): {named}."
_RULE = "─"


# Tables of the first screen: the points, and what an option asked for.
_FIRST = ("rows", "target")
# Rows and caveats of the first screen.
MOST_ROWS, MOST_CAVEATS, MOST_CHECKS, MOST_VALUES = 44, 4, 3, 3
MORE = "more: --notes, or the page: -o report.html"


def first_screen(report: Report, width: int = WIDTH) -> str:
    """Return the answer, the checks that fail, the points, and the caveats of a report.

    It is `render` without the other tables, the notes and the provenance.
    """
    prose = min(width, WIDTH)
    checks = [f"check: {line}" for line in report.checks]
    lines = [report.title, *report.answer, *_few(checks, MOST_CHECKS, "checks")]
    parts = [_wrapped(line, prose) for line in lines]
    for table in report.tables:
        if table.rows and table.key in _FIRST:
            parts += ["", _table(replace(table, rows=table.rows[:MOST_ROWS]), width)]
            if len(table.rows) > MOST_ROWS:
                parts += [f"{len(table.rows) - MOST_ROWS} more rows: --notes, CSV or JSON"]
    said = f"{CAVEATS}{MEANING[FlagCode.ONE_RUN]}"  # In the title: n=1.
    caveats = [
        line for line in report.summary if line.startswith(CAVEATS) and not line.startswith(said)
    ]
    unknown = [line for line in report.summary if line.startswith(NOT_KNOWN)]
    left_out = [
        f"left out: {row['point']}: {row['reason']}"
        for table in report.tables
        if table.key == "refused"
        for row in table.records
    ]
    below = [
        *_few(caveats, MOST_CAVEATS, "caveats"), *_few(left_out, MOST_CAVEATS, "points"),
        *_failed(report), *unknown, MORE,
    ]  # fmt: skip
    return "\n".join([*parts, "", *(_wrapped(line, prose) for line in below)]) + "\n"


def _few(lines: Sequence[str], most: int, what: str) -> list[str]:
    more = [f"{len(lines) - most} more {what}: --notes"] if len(lines) > most else []
    return [*lines[:most], *more]


def _failed(report: Report) -> Iterator[str]:
    """Yield the first run of each reason why a run has no result that the answer does not name."""
    answer = " ".join(report.answer)
    without = (r for r in report.run_rows if r["problem"] and str(r["problem"]) not in answer)
    shown = [
        f"{first_of((str(run['run_id']) for run in runs), most=1)}: {why}"
        for why, runs in grouped(without, lambda run: str(run["problem"])).items()
    ]
    yield from _few(shown, MOST_CHECKS, "reasons")


def render(report: Report, width: int = WIDTH) -> str:
    """Return the report as text: tables of `width` columns, prose of at most 100.

    Columns that do not fit are named below their table. No cell is truncated: if numbers need more
    space, the table is wider.
    """
    prose = min(width, WIDTH)
    parts = [_wrapped(report.title, prose), "=" * min(prose, len(one_line(report.title))), ""]
    parts += [_wrapped(line, prose) for line in report.summary]
    for table in report.tables:
        if table.rows:
            parts += ["", one_line(table.title), "", _table(table, width)]
    parts += _section("Checks", report.checks, prose) + _section("Notes", report.notes, prose)
    facts = tuple(f"{fact.name}: {values_of(fact, MOST_VALUES)}" for fact in report.provenance)
    parts += _section("Provenance", facts, prose)
    return "\n".join(parts) + "\n"


def _section(title: str, lines: tuple[str, ...], width: int) -> list[str]:
    return ["", title, "", *(_wrapped(f"- {line}", width) for line in lines)] if lines else []


def _wrapped(line: str, width: int) -> str:
    # A no-break space keeps a number and its % together; `one_line` removes all others.
    tied = one_line(line).replace(" %", "\u00a0%")
    filled = textwrap.fill(tied, width, subsequent_indent="  ", break_on_hyphens=False)
    return filled.replace("\u00a0", " ")


def _table(table: ReportTable, width: int) -> str:
    # Two blanks between columns, or one.
    layout = laid_out(table, width, 2)
    if layout.left_out or sum(layout.widths) + 2 * (len(layout.widths) - 1) > width:
        layout = laid_out(table, width, 1)
        named = ", ".join(dict.fromkeys(layout.left_out))
        missing = _wrapped(NO_ROOM.format(named=named), min(width, WIDTH)) if named else ""
        return _drawn(layout, " ") + "\n\n" * bool(named) + missing
    return _drawn(layout, "  ")


def _drawn(layout: Layout, gap: str) -> str:
    sizes = layout.widths
    lines = layout.heading_lines
    deep = len(lines)
    for row in layout.rows:
        lines += zip_longest(*row, fillvalue="")
    right = [column.align == "right" for column in layout.columns]
    drawn = [gap.join(map(_padded, cells, sizes, right)).rstrip() for cells in lines]
    drawn.insert(deep, _RULE * (sum(sizes) + len(gap) * (len(sizes) - 1)))
    return "\n".join(drawn)


def _padded(text: str, size: int, right: bool) -> str:
    if text.isascii():
        return text.rjust(size) if right else text.ljust(size)
    blanks = " " * (size - places(text))
    return blanks + text if right else text + blanks


def values_of(fact: Fact, most: int) -> str:
    """Return the first values of a fact; if they differ, with the number of runs with each."""
    alone = len(fact.values) == 1 or all(count == 1 for _, count in fact.values)
    texts = (text if alone else f"{text} ({count}x)" for text, count in fact.values)
    return first_of(texts, most=most)


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
