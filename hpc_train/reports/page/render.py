"""Report -> the text of its page."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from hpc_train.base.metrics import RUN_METRICS, Metric, in_text_order
from hpc_train.reports.report import (
    ABSENT,
    CAVEATS,
    LEVEL,
    MEASURED,
    NOT_KNOWN,
    OK,
    Figure,
    Report,
    ReportTable,
    Row,
    grouped,
    one_line,
    series_heading,
    short_series,
    significant,
    whole,
)
from hpc_train.reports.text import tied, values_of

FOLDER = Path(__file__).parent
# Values of a fact; rows of a table behind a figure and of failed runs; a longer table of runs is
# collapsed and not printed.
MOST_VALUES, MANY = 20, 300
# Ends and scripts that a page has, and names of runs below an end or of a setting.
MOST_ENDS, MOST_NAMES = 200, 50
LONGEST_DIAGNOSIS = 20_000
# Length of a cell in the table of runs; the full text is shown with the end of the run.
LONGEST = 120
_NOT_PLAIN = re.compile(r"[^\n\t -~]")
_METRICS = (
    *(metric for metric in in_text_order() if metric.run_heading),
    *(metric for metric in RUN_METRICS if metric.run_heading and not metric.text),
)
WORDS = frozenset({"state", "series", "transport", "problem", "flags"})
WRAPPED = frozenset({"problem", "flags"})


class Grid(NamedTuple):
    """A table: name, headings, columns of numbers, and the texts of its rows.

    `left_out` is the number of rows that are left out because there are too many; `prose` are the
    columns of sentences.
    """

    label: str
    heads: Sequence[str]
    right: Sequence[int]
    rows: Sequence[Sequence[str]]
    left_out: int = 0
    prose: Sequence[int] = ()


def render(report: Report) -> str:
    """Return the page; equal reports give equal text."""
    first, others = report.tables[:1], [t for t in report.tables[1:] if t.key != "runs"]
    failed = next((table for table in report.tables if table.key == "runs"), None)
    script = _part("page.js")
    answer = [*report.answer]
    unknown = (f"Not known: {line}" for line in report.said(NOT_KNOWN))
    measured = [*report.said(MEASURED), *unknown]
    given = "regime" in report.conditions and any(" [" in line for line in answer)
    facts = [[fact.name, values_of(fact, MOST_VALUES) or ABSENT] for fact in report.provenance]
    ends = _ends(report)
    return _environment().get_template("page.html.j2").render(
        report=report,
        answer=answer,
        brackets=f"In brackets: the {LEVEL} interval of the number before." if given else "",
        measured=measured,
        caveats=report.said(CAVEATS),
        points=[grid(table) for table in first if table.rows],
        others=[grid(table) for table in others if table.rows],
        drawings=list(map(_drawing, report.figures)),
        failed=grid(failed, MANY) if failed and failed.rows else None,
        facts=Grid("Provenance", ("fact", "value"), (), facts, prose=(2,)),
        ends=ends[:MOST_ENDS],
        ends_left_out=len(ends) - MOST_ENDS,
        runs=_run_table(report, ends[:MOST_ENDS]),
        most_names=MOST_NAMES,
        many=MANY,
        style=_part("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def grid(table: ReportTable, most: int | None = None) -> Grid:
    """Return a table of the report, or its first `most` rows."""
    return Grid(
        label=table.title,
        heads=[column.heading for column in table.columns],
        right=[i for i, c in enumerate(table.columns, start=1) if c.align == "right"],
        rows=[list(row) for row in table.rows[:most]],
        left_out=len(table.rows) - len(table.rows[:most]),
        prose=[i for i, c in enumerate(table.columns, start=1) if c.prose],
    )


def text_of(value: Any) -> str:
    """Return a value of a JSON row as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and isfinite(value):
        return whole(value) if value.is_integer() and abs(value) < 1e6 else significant(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) or ABSENT
    return ABSENT if value in (None, "") else str(value)


def visible(value: Any) -> Any:
    """Return text on one line, without control or bidirectional characters."""
    if isinstance(value, Markup) or (isinstance(value, str) and value.isprintable()):
        return value
    return one_line(str(value))


def lines(text: str) -> Markup:
    """Return text with its own line breaks, each other control character as its escape."""
    return escape(_NOT_PLAIN.sub(lambda found: _seen(found[0]), text))


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
    # Numbers of prose stay beside their names and intervals.
    made.filters |= {"lines": lines, "tied": lambda text: escape(tied(one_line(text)))}
    return made


def _part(name: str) -> Markup:
    # Files of this package, not output of a run.
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704


def _drawing(figure: Figure) -> dict[str, Any]:
    """Return the image of a figure as an address, and its numbers."""
    image = base64.b64encode(figure.images.get("svg", b"")).decode()
    rows = grid(figure.data, MANY) if figure.data else None
    return {"caption": figure.caption, "image": image, "rows": rows}


def _ends(report: Report) -> list[dict[str, Any]]:
    """Return how runs without a result ended, each way once, with the runs that did."""
    known = report.diagnoses
    lost = (run for run in report.run_rows if run["state"] != OK or run["problem"])
    ends = grouped(
        lost if report.of_runs else (),
        lambda run: (run["state"], run["problem"], known.get(run["run_id"], "")),
    )
    return [
        {
            "state": state,
            "problem": problem,
            "diagnosis": diagnosis[:LONGEST_DIAGNOSIS]
            + "\n… more characters: hpctrain diagnose" * (len(diagnosis) > LONGEST_DIAGNOSIS),
            "runs": [run["run_id"] for run in runs],
        }
        for (state, problem, diagnosis), runs in ends.items()
    ]


def _written(metric: Metric) -> Callable[[Any], str]:
    if metric.counts:
        return text_of
    # Whole seconds, also above 10,000 without an exponent.
    return whole if metric.key == "wall_s" or (metric.text and metric.text.whole) else significant


# Heading and format; a column without any value is left out, and a constant column is written once
# above the table.
COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    **{name: (name, text_of) for name in ("state", "series", "nodes", "ranks")},
    "repetition": ("rep.", text_of),
    **{metric.key: (metric.run_heading, _written(metric)) for metric in _METRICS},
    **{name: (name, text_of) for name in ("transport", "problem", "flags")},
}


def _run_table(report: Report, ends: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all runs in the order of the study, each with its end; `same` is what all share."""
    runs = report.run_rows
    axis = series_heading(runs)

    def text(run: Row, key: str) -> str:
        shown = COLUMNS[key][1](run.get(key))
        shown = short_series(shown, axis) if key == "series" else shown
        return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"

    columns = {key: [text(run, key) for run in runs] for key in COLUMNS}
    known = {k: texts for k, texts in columns.items() if not {*texts} <= {ABSENT}}
    keys = [k for k, t in known.items() if k == "state" or len({*t}) > 1]
    heads = (axis if axis and key == "series" else COLUMNS[key][0] for key in keys)
    names = [str(run["run_id"]) for run in runs]
    places = {name: f"e{i}" for i, end in enumerate(ends, start=1) for name in end["runs"]}
    return {
        "heads": ["run", "end", *heads],
        # The links are the second column.
        "right": [i for i, key in enumerate(keys, start=3) if key not in WORDS],
        "wrapped": [i for i, key in enumerate(keys, start=3) if key in WRAPPED],
        "rows": [
            (name, places.get(name), cells)
            for name, *cells in zip(names, *(known[key] for key in keys), strict=True)
        ],
        "same": ", ".join(f"{COLUMNS[k][0]} {t[0]}" for k, t in known.items() if k not in keys),
        "number": {name: i for i, name in enumerate(names, start=1)},
    }  # fmt: skip
