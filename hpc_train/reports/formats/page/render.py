"""Report -> the text of its page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from hpc_train.base.metrics import RUN_METRICS, Metric, in_text_order
from hpc_train.jobs.study import ALONE
from hpc_train.reports.formats import csv_table
from hpc_train.reports.point_and_series_names import counted, series_heading, short_series
from hpc_train.reports.report import (
    CAVEATS,
    COST,
    MEASURED,
    NOT_KNOWN,
    Fact,
    Figure,
    Report,
    ReportTable,
    RunDetail,
)
from hpc_train.reports.table_layout import tied
from hpc_train.reports.value_format import ABSENT, Row, level_word, one_line, significant, whole
from hpc_train.runs.run import JobState

# A longer list of values is folded, and not printed.
MOST_VALUES = 20


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


class LongFact(NamedTuple):
    """A fact with a value of its own for each of many runs: its title, and the values."""

    title: str
    values: Sequence[str]


def grid(table: ReportTable, most: int | None = None) -> Grid:
    """Return a table of the report, or its first `most` rows."""
    return Grid(
        label=table.title,
        heads=[column.heading for column in table.columns],
        right=[i for i, c in enumerate(table.columns, start=1) if c.align == "right"],
        rows=[[cell.text for cell in row] for row in table.rows[:most]],
        left_out=len(table.rows) - len(table.rows[:most]),
        prose=[i for i, c in enumerate(table.columns, start=1) if c.prose],
    )


def every_column(table: ReportTable) -> Grid:
    """Return all columns, transposed: one line per quantity, one column per row."""
    names = dict.fromkeys(name for row in table.records for name in row)
    filled = [n for n in names if any(row.get(n) not in (None, "", []) for row in table.records)]
    axis = series_heading(table.records) if "series" in names else ""
    heads = ["quantity", *("\n".join(point_words(row, axis)) for row in table.records)]
    return Grid(
        label=f"{table.title}, every column",
        heads=heads,
        right=range(2, len(heads) + 1),
        rows=[
            [_column_words(name), *(text_of(row.get(name)) for row in table.records)]
            for name in filled
        ],
    )


def long_facts(facts: Iterable[Fact]) -> list[LongFact]:
    """Return the facts that would fill pages of the table: a log of each of 1,000 runs."""
    return [
        LongFact(f"{fact.name}: {len(fact.values):,}", [value for value, _ in fact.values])
        for fact in facts
        if len(fact.values) > MOST_VALUES
    ]


def text_of(value: Any) -> str:
    """Return a value of a JSON row as text."""
    if isinstance(value, Mapping):
        limits = [value.get("low"), value.get("high")]
        shown = significant(value.get("value"))
        return shown if None in limits else f"{shown} [{', '.join(map(significant, limits))}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and isfinite(value):
        return whole(value) if value.is_integer() and abs(value) < 1e6 else significant(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) or ABSENT
    return ABSENT if value in (None, "") else str(value)


def _column_words(name: str) -> str:
    """Return `step time [s]` for `step_time_s`, `step time low [s]` for `step_time_s_low`."""
    words = name.split("_")
    unit = " [s]" if "s" in words else ""
    return " ".join(word for word in words if word != "s") + unit


def point_words(row: Row, axis: str) -> list[str]:
    """Return `srun`, `2 nodes`, `8 ranks`: the point that a row or a run belongs to."""
    alone = row.get("series") in (None, "", ALONE)
    parts = [] if alone else [short_series(str(row["series"]), axis)]
    parts += [counted(row[name], name[:-1]) for name in ("nodes", "ranks") if row.get(name)]
    return parts or [ABSENT]


FOLDER = Path(__file__).parent
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
    drawings = [drawing(figure) for figure in report.figures]
    runs, folded = run_table(report, found), long_facts(report.provenance)
    expected = len(report.run_rows)
    rows = []
    for fact in report.provenance:
        alone = len(fact.values) == 1 and fact.values[0][1] == expected
        shown = [v if alone else f"{v} ({counted(n, 'run')})" for v, n in fact.values]
        if len(shown) > MOST_VALUES:
            shown = [f"{len(shown):,}, listed below"]
        rows.append([fact.name, "; ".join(shown) or ABSENT])
    return _environment().get_template("page.html.j2").render(
        report=report,
        words=_words(report),
        points=[grid(table) for table in first if table.rows],
        wide=wide,
        others=[grid(table) for table in others if table.rows],
        drawings=drawings,
        failed=grid(failed, MANY) if failed and failed.rows else None,
        facts=Grid("Provenance", ("fact", "value"), (), rows, prose=(2,)),
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
    answer = [*report.answer]
    measured = [*report.said(MEASURED), *report.said(COST)]
    measured += [f"Not known: {line}" for line in report.said(NOT_KNOWN)]
    level = level_word(float(report.conditions.get("confidence", 0.95)))
    given = "regime" in report.conditions and any(" [" in line for line in answer)
    brackets = f"In brackets: the {level} interval of the number before." if given else ""
    return SummaryParts(answer, brackets, measured, [*report.said(CAVEATS)])


def _part(name: str) -> Markup:
    # Files of this package, not output of a run.
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704


MOST_ROWS = 300
LARGEST_DATA = 100_000


class PageFigure(NamedTuple):
    """A figure of the page: its markup.

    `rows` are the numbers of the figure, None if there are none; `download` is a URL of the same as
    CSV.
    """

    caption: str
    name: str
    image: Markup
    rows: Grid | None = None
    download: str = ""


def drawing(figure: Figure) -> PageFigure:
    """Return the markup of a figure and its numbers."""
    # The SVG is created by this package, and names in it are escaped.
    image = Markup(figure.images.get("inline", b"").decode())  # noqa: S704
    made = PageFigure(figure.caption, figure.name, image)
    if figure.data is None:
        return made
    table = csv_table.table_text(figure.data).encode()
    if len(table) <= LARGEST_DATA:
        made = made._replace(download=f"data:text/csv;base64,{base64.b64encode(table).decode()}")
    return made._replace(rows=grid(figure.data, MOST_ROWS))


# Runs of a report -> the table of all runs, and the end, settings and script of each.
#
# Details that several runs share are written once and referenced.

OK = JobState.COMPLETED.value
MOST_ENDS, MOST_NAMES, MOST_SETTINGS = 200, 50, 300
LONGEST_DIAGNOSIS = 20_000
LARGEST_SCRIPTS = 1_000_000

GroupKey = tuple[str, ...]
_METRICS = (
    *(metric for metric in in_text_order() if metric.run_heading),
    *(metric for metric in RUN_METRICS if metric.run_heading and not metric.text),
)
WORDS = frozenset({"state", "series", "transport", "problem", "flags"})
LONG = frozenset({"problem", "flags"})
LINKS = (("end", "e"), ("settings", "c"), ("script", "s"))
# Length of a cell; the full text is shown with the end of the run.
LONGEST = 120


class End(NamedTuple):
    """An end (state and diagnosis), and the runs with it."""

    state: str
    problem: str
    diagnosis: str
    runs: Sequence[str]


class RunScript(NamedTuple):
    """The text of a job script, its point, and its number of runs."""

    digest: str
    text: str
    where: str
    runs: int


class Lookup(NamedTuple):
    """The details of all runs, without duplicates.

    `end_of`, `variant_of` and `script_of` map a run to a number, counted from 1.
    """

    ends: Sequence[End]
    common: Grid
    variants: Grid
    scripts: Sequence[RunScript]
    end_of: dict[str, int]
    variant_of: dict[str, int]
    script_of: dict[str, int]
    ends_left_out: int
    scripts_left_out: int


def lookup(report: Report) -> Lookup:
    """Gather the details of a report's runs."""
    ends, end_of = _ends(report.details)
    scripts, script_of = _scripts(report)
    common, variants, variant_of = _settings(report.details)
    return Lookup(
        ends=ends[:MOST_ENDS],
        common=common,
        variants=variants,
        scripts=scripts,
        end_of={run: number for run, number in end_of.items() if number <= MOST_ENDS},
        variant_of={run: n for run, n in variant_of.items() if n <= len(variants.rows)},
        script_of=script_of,
        ends_left_out=len(ends[MOST_ENDS:]),
        scripts_left_out=len({d.script for d in report.details if d.script}) - len(scripts),
    )


def _ends(details: Sequence[RunDetail]) -> tuple[list[End], dict[str, int]]:
    runs: dict[GroupKey, list[str]] = {}
    for one in details:
        if one.problem or one.diagnosis or one.state != OK:
            runs.setdefault((one.state, one.problem, one.diagnosis), []).append(one.run_id)
    ends = [
        End(state, problem, _shortened(diagnosis), names)
        for (state, problem, diagnosis), names in runs.items()
    ]
    return ends, {name: i for i, end in enumerate(ends, start=1) for name in end.runs}


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_DIAGNOSIS:
        return text
    return f"{text[:LONGEST_DIAGNOSIS]}\n… {len(text) - LONGEST_DIAGNOSIS} characters more"


def _scripts(report: Report) -> tuple[list[RunScript], dict[str, int]]:
    runs: dict[str, list[str]] = {}
    for one in report.details:
        if one.script in report.scripts:
            runs.setdefault(one.script, []).append(one.run_id)
    kept, room = [], LARGEST_SCRIPTS
    numbers: dict[str, int] = {}
    points = {str(run["run_id"]): run for run in report.run_rows}
    axis = series_heading(report.run_rows)
    for digest, names in runs.items():
        text = report.scripts[digest]
        room -= len(text)
        if room < 0:
            break
        own = [", ".join(point_words(points[name], axis)) for name in names if name in points]
        kept.append(RunScript(digest, text, _few(list(dict.fromkeys(own))), len(names)))
        numbers |= dict.fromkeys(names, len(kept))
    return kept, numbers


def _few(names: Sequence[str]) -> str:
    more = f" and {counted(len(names) - 1, 'other point')}" if len(names) > 1 else ""
    return f"{names[0]}{more}" if names else ABSENT


def _settings(details: Sequence[RunDetail]) -> tuple[Grid, Grid, dict[str, int]]:
    """Return the settings that all runs share, and each combination of the others."""
    seen = Counter(setting for one in details for setting in one.settings)
    values: dict[str, list[str]] = {}
    origins: dict[str, list[str]] = {}
    count: Counter[str] = Counter()
    for (key, value, origin), runs in seen.items():
        values.setdefault(key, []).append(value)
        origins.setdefault(key, []).append(origin)
        count[key] += runs
    known = sum(bool(one.settings) for one in details)
    varies = [key for key in values if len({*values[key]}) > 1 or count[key] < known]
    common = [
        [key, values[key][0], ", ".join(dict.fromkeys(origins[key]))]
        for key in values
        if key not in varies
    ]
    variants, numbers = _variants(details, varies)
    heads = ["", "runs", *(f"{key}\n({', '.join(dict.fromkeys(origins[key]))})" for key in varies)]
    return (
        Grid("Settings of all runs", ("setting", "value", "from"), (), common, 0, (2, 3)),
        Grid(
            "Settings that differ", heads, (2,), variants[:MOST_SETTINGS],
            len(variants[MOST_SETTINGS:]),
        ),
        numbers,
    )  # fmt: skip


def _variants(
    details: Sequence[RunDetail], varies: Sequence[str]
) -> tuple[list[list[str]], dict[str, int]]:
    runs: dict[GroupKey, list[str]] = {}
    for one in details if varies else ():
        if one.settings:
            own = {key: value for key, value, _ in one.settings}
            runs.setdefault(tuple(own.get(key, ABSENT) for key in varies), []).append(one.run_id)
    rows = [[str(i), str(len(n)), *key] for i, (key, n) in enumerate(runs.items(), start=1)]
    return rows, {name: i for i, names in enumerate(runs.values(), start=1) for name in names}


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


class RunRow(NamedTuple):
    """One run: its cells, and (text, number of the target in the page) for each link."""

    cells: Sequence[str]
    links: Sequence[tuple[str, str]]

    @property
    def ok(self) -> bool:
        """Whether the run has a result."""
        return self.cells[1] == OK


class RunTable(NamedTuple):
    """All runs; `number` maps a run to its row, `same` has the values that all share."""

    heads: Sequence[str]
    right: Sequence[int]
    wrapped: Sequence[int]
    rows: Sequence[RunRow]
    same: str
    number: dict[str, int]


def run_table(report: Report, found: Lookup) -> RunTable:
    """Return the rows of all runs in the order of the study."""
    runs = report.run_rows
    names = [str(run["run_id"]) for run in runs]
    axis = series_heading(runs)
    columns = {key: [_text(run, key, axis) for run in runs] for key in COLUMNS}
    known = {k: texts for k, texts in columns.items() if not {*texts} <= {ABSENT}}
    keys = [k for k, t in known.items() if k == "state" or len({*t}) > 1]
    same = [f"{COLUMNS[k][0]} {t[0]}" for k, t in known.items() if k not in keys]
    return RunTable(
        heads=["run", "more", *(axis if axis and k == "series" else COLUMNS[k][0] for k in keys)],
        # The links are the second column.
        right=[i for i, key in enumerate(keys, start=3) if key not in WORDS],
        wrapped=[i for i, key in enumerate(keys, start=3) if key in LONG],
        rows=[
            RunRow((name, *cells), _links(name, found))
            for name, *cells in zip(names, *(known[key] for key in keys), strict=True)
        ],
        same=", ".join(same),
        number={name: i for i, name in enumerate(names, start=1)},
    )


def _text(run: dict[str, Any], key: str, axis: str) -> str:
    text = COLUMNS[key][1](run.get(key))
    text = short_series(text, axis) if key == "series" else text
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _links(name: str, found: Lookup) -> list[tuple[str, str]]:
    numbers = (found.end_of, found.variant_of, found.script_of)
    return [
        (word, f"{letter}{of[name]}")
        for (word, letter), of in zip(LINKS, numbers, strict=True)
        if name in of
    ]
