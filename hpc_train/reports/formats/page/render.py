"""Report -> the text of its page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from hpc_train.model.report import Report
from hpc_train.reports.formats.page.figures import PageFigure, drawing
from hpc_train.reports.formats.page.run_details import MOST_NAMES, RunTable, lookup, run_table
from hpc_train.reports.formats.page.tables import (
    Grid,
    LongFact,
    every_column,
    facts_grid,
    grid,
    long_facts,
)
from hpc_train.reports.table_layout import tied
from hpc_train.reports.value_format import level_word, one_line

FOLDER = Path(__file__).parent
CAVEATS, MEASURED = "Caveats: ", ("Measured: ", "Baseline")
# Lines of the answer above the first figure, which is visible without scrolling.
LEAD = 1
# A longer table of runs is collapsed and not printed.
MANY = 300
# Every column of more points is wider than the paper, with the heading of each row.
MOST_PRINTED = 9
_NOT_PLAIN = re.compile(r"[^\n\t -~]")


class SummaryParts(NamedTuple):
    """The parts of the summary; `brackets` explains the brackets of the answer."""

    answer: list[str]
    brackets: str
    measured: list[str]
    caveats: list[str]


def render(report: Report) -> str:
    """Return the page; equal reports give equal text."""
    found = lookup(report)
    first, others = report.tables[:1], [t for t in report.tables[1:] if t.key != "runs"]
    failed = next((table for table in report.tables if table.key == "runs"), None)
    script = _part("page.js")
    wide = [every_column(table) for table in first if table.records]
    drawings = [drawing(figure, i) for i, figure in enumerate(report.figures, start=1)]
    runs, folded = run_table(report, found), long_facts(report.provenance)
    return _environment().get_template("page.html.j2").render(
        report=report,
        words=_words(report),
        lead=LEAD,
        points=[grid(table) for table in first if table.rows],
        wide=wide,
        others=[grid(table) for table in others if table.rows],
        drawings=drawings,
        failed=grid(failed, MANY) if failed and failed.rows else None,
        facts=facts_grid(report.provenance, len(report.run_rows)),
        long_facts=folded,
        found=found,
        runs=runs,
        left_off=_not_printed(wide, drawings, runs, folded),
        most_printed=MOST_PRINTED,
        most_names=MOST_NAMES,
        many=MANY,
        style=_part("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def _not_printed(
    wide: Sequence[Grid],
    drawings: Sequence[PageFigure],
    runs: RunTable,
    folded: Sequence[LongFact],
) -> list[str]:
    """Name what the page shows on a screen and not on paper."""
    left_off = {
        f"the table of all {len(runs.rows):,} runs": len(runs.rows) > MANY,
        "every column of the points": any(len(one.heads) > MOST_PRINTED for one in wide),
        "the numbers behind the figures": any(one.rows for one in drawings),
    }
    found = [part for part, missing in left_off.items() if missing]
    return [*found, *(f"{one.title} values of the provenance" for one in folded)]


def visible(value: Any) -> Any:
    """Return text on one line, without control or bidirectional characters."""
    if isinstance(value, Markup) or (isinstance(value, str) and value.isprintable()):
        return value
    return one_line(str(value))


def lines(text: str) -> Markup:
    """Return text with its own line breaks, each other control character as its escape."""
    return escape(_NOT_PLAIN.sub(lambda found: _seen(found[0]), text))


def tied_cell(text: str) -> Markup:
    """Return a cell of prose in which numbers stay beside their names and intervals."""
    return escape(tied(one_line(text)))


def _seen(text: str) -> str:
    return text if text.isprintable() else text.encode("unicode_escape").decode()


@cache
def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"lines": lines, "tied": tied_cell}
    return made


def _words(report: Report) -> SummaryParts:
    measured = [_after(MEASURED[0], line) for line in report.summary if line.startswith(MEASURED)]
    caveats = [_after(CAVEATS, line) for line in report.summary if line.startswith(CAVEATS)]
    answer = [line for line in report.summary if not line.startswith((*MEASURED, CAVEATS))]
    level = level_word(float(report.conditions.get("confidence", 0.95)))
    given = "regime" in report.conditions and any(" [" in line for line in answer)
    brackets = f"In brackets: the {level} interval of the number before." if given else ""
    return SummaryParts(answer, brackets, measured, caveats)


def _after(label: str, line: str) -> str:
    text = line.removeprefix(label)
    return text[:1].upper() + text[1:]


def _part(name: str) -> Markup:
    # Files of this package, not output of a run.
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704
