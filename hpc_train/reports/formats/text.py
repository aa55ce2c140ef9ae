"""Report -> text for a terminal, without colours: the first screen, or all of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec.structs import replace

from hpc_train.reports.caveats import MEANING
from hpc_train.reports.report import CAVEATS, NOT_KNOWN, Fact, Report, ReportTable
from hpc_train.reports.table_layout import Layout, laid_out, places
from hpc_train.reports.words import first_of, grouped, one_line
from hpc_train.scaling.run_flags import FlagCode

WIDTH = 100
NO_ROOM = "Columns that do not fit (--wide shows them): {named}."
_RULE = "─"


# Tables of the first screen: the points, and what an option asked for.
_FIRST = ("rows", "target", "forecast")
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
