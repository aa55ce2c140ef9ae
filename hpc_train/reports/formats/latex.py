r"""Report -> LaTeX tables in the style of the package booktabs; needs \usepackage{booktabs}."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from msgspec.structs import replace

from hpc_train.reports.report import Report, ReportTable
from hpc_train.reports.table_layout import Layout, laid_out
from hpc_train.reports.value_format import ABSENT, one_line

# Of the class article at 10 pt [pt]; columns are twice \tabcolsep apart.
TEXT_WIDTH, GAP = 345.0, 6.0
# Lines of 9.5 pt on a page beside the caption, and those of a note.
PAGE_LINES, NOTE_LINES = 50, 28
NO_ROOM = "Columns that do not fit are in JSON: {named}."
_BLANK = re.compile(r"\s+")


def render(report: Report) -> str:
    r"""Return the points as a `table` with caption, label and notes below it; then other tables.

    The caption is the title. What was measured, the baselines, the caveats and the notes are the
    note of the table; the answers are comments, as are further notes. Gates are not results and
    are left out.

    Tables are in \footnotesize and fit into a text of 345 pt: columns that do not fit are left out
    by name, also with `--wide`, and rows are continued on a further page. Text is escaped, so that
    names and log lines are shown unchanged; `'` and `"` need the package textcomp and T1 fonts.
    """
    label = re.sub(r"[^A-Za-z0-9-]+", "-", report.name or "scaling").strip("-")
    answers = report.answer
    conditions = [line for line in report.summary if line not in answers]
    notes, more = _fitting_notes([*conditions, *report.notes])
    shown = [table for table in report.tables if table.rows and table.key != "gates"]
    blocks: list[str] = []
    for i, table in enumerate(shown):
        caption, name = (table.title, f"-{table.key}") if i else (f"{report.title}.", "")
        blocks += _floats(table, caption, f"tab:{label}{name}", () if i else notes)
    comments = [*answers, *(() if blocks else notes), *more]
    blocks += [f"% {_BLANK.sub(' ', one_line(line))}" for line in comments]
    return "\n".join(blocks) + "\n"


def _fitting_notes(notes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the notes that fit below a table, and the others."""
    lines = 0
    for place, note in enumerate(notes):
        lines += _note_lines(note)
        if lines > NOTE_LINES:
            return [*notes[:place]], [*notes[place:]]
    return [*notes], []


def _note_lines(note: str) -> int:
    # Ragged lines are not filled to the end.
    return 1 + int(printed_width(one_line(note)) / (0.93 * TEXT_WIDTH))


def _floats(table: ReportTable, caption: str, label: str, notes: Sequence[str]) -> Iterator[str]:
    layout = laid_out(table, TEXT_WIDTH, GAP, printed_width)
    if sum(layout.widths) + GAP * (len(layout.widths) - 1) > TEXT_WIDTH:
        # Whatever does not fit is left out, from the right.
        last = len(table.columns) + max(one.drop for one in table.columns)
        columns = (replace(one, drop=one.drop or last - i) for i, one in enumerate(table.columns))
        table = replace(table, columns=tuple(columns))
        layout = laid_out(table, TEXT_WIDTH, GAP, printed_width)
    if layout.left_out:
        named = ", ".join(dict.fromkeys(layout.left_out))
        notes = [*notes, NO_ROOM.format(named=named)]
    for number, rows in enumerate(_pages(layout, sum(map(_note_lines, notes)))):
        said = f"{caption.rstrip('.')} (continued)" if number else caption
        named = f"{label}-{number + 1}" if number else label
        yield _float(layout, rows, (said, named), () if number else notes)


def _pages(layout: Layout, noted: int) -> Iterator[Sequence[Sequence[Sequence[str]]]]:
    """Yield the rows of each page; on the first one there is a note."""
    head = max(map(len, layout.heads))
    room, page = PAGE_LINES - head - noted, list[Sequence[Sequence[str]]]()
    for row in layout.rows:
        lines = max(map(len, row))
        if page and lines > room:
            yield page
            room, page = PAGE_LINES - head, []
        room -= lines
        page.append(row)
    yield page


def _float(
    layout: Layout,
    rows: Sequence[Sequence[Sequence[str]]],
    names: tuple[str, str],
    notes: Sequence[str],
) -> str:
    """Return a table of some rows of a layout; `names` are its caption and its label."""
    (caption, label), heads = names, layout.heads
    form = "".join("r" if column.align == "right" else "l" for column in layout.columns)
    deep = max(map(len, heads))
    above = zip(*([""] * (deep - len(head)) + [*head] for head in heads), strict=True)
    lines = [line for row in rows for line in zip_longest(*row, fillvalue="")]
    return "\n".join((
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(caption)}}}",
        rf"  \label{{{label}}}",
        r"  \footnotesize",
        rf"  \setlength{{\tabcolsep}}{{{GAP / 2:g}pt}}",
        rf"  \begin{{tabular}}{{@{{}}{form}@{{}}}}",
        r"    \toprule",
        *(f"    {_row(row)}" for row in above),
        r"    \midrule",
        *(f"    {_row(row)}" for row in lines),
        r"    \bottomrule",
        r"  \end{tabular}",
        *_note(notes),
        r"\end{table}",
    ))  # fmt: skip


def _note(lines: Sequence[str]) -> list[str]:
    """Return the note below a table: a paragraph for each line."""
    if not lines:
        return []
    return [
        r"  \par\smallskip",
        r"  \begin{minipage}{\linewidth}",
        r"    \raggedright",
        *(rf"    {escaped(line)}\par" for line in lines),
        r"  \end{minipage}",
    ]


def _row(texts: Iterable[str]) -> str:
    row = " & ".join("--" if text == ABSENT else escaped(text) for text in texts)
    # After the `\\` of the row above, these would be parsed as its options.
    return f"{'{}' if row.startswith(('[', '*')) else ''}{row} \\\\"


_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "≥": r"$\geq$", "≤": r"$\leq$",
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "≈": r"$\approx$", "≠": r"$\neq$",
    "∞": r"$\infty$", "\u2212": r"$-$", "\u03bc": r"\textmu{}", "\u00b5": r"\textmu{}",
}  # fmt: skip
# Beyond ASCII, T1 fonts have these: Latin letters, and signs of typography.
_IN_FONTS = r"\u00a1-\u00ac\u00ae-\u017e\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030\u20ac"
_SPECIAL = re.compile("[" + re.escape("".join(_ESCAPES)) + rf"]|--|[^\x20-\x7e{_IN_FONTS}]")
# Of the font ecrm0800 [pt], as TeX measures them.
_SIZES = {
    2.36: "!',.:;[]il|", 2.6: "fj", 2.83: "- ", 3.06: "I", 3.31: "()trs", 3.78: "cez", 4.02: "?",
    4.25: '"$*/0123456789\\`ago{}', 4.49: "kqvxyJ", 4.72: "Sbdhnpu", 5.2: "Z^~", 5.31: "L",
    5.54: "F", 5.78: "EP", 6.02: "B", 6.25: "CTwR", 6.49: "AHNUVXYD", 6.67: "K&+<=>@OQ_G",
    7.08: "#%m", 7.78: "M", 8.73: "W", 11.33: "…",
}  # fmt: skip
_WIDTHS = {letter: size for size, letters in _SIZES.items() for letter in letters}
_OTHER = 8.5


def escaped(text: str) -> str:
    """Return text that LaTeX prints unchanged, including two hyphens.

    A character that the fonts of pdfLaTeX lack, such as a Chinese one, is written as `U+8282`.
    """
    return _SPECIAL.sub(_replaced, one_line(text))


def _replaced(found: re.Match[str]) -> str:
    text = found[0]
    return _ESCAPES.get(text) or ("{-}{-}" if text == "--" else _code_point(text))


def _code_point(letter: str) -> str:
    return f"U+{ord(letter):04X}"


def printed_width(text: str) -> float:
    r"""Return about the width of a text in points, printed in \footnotesize of 8 pt."""
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> float:
    known = _WIDTHS.get(letter)
    if known is None and _SPECIAL.match(letter) and letter not in _ESCAPES:
        return printed_width(_code_point(letter))
    return _OTHER if known is None else known
