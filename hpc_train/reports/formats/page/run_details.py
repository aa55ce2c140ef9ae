"""Runs of a report -> the table of all runs, and the end, settings and script of each.

Details that several runs share are written once and referenced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hpc_train.model.metric import Metric
from hpc_train.model.metrics import RUN_METRICS, in_text_order
from hpc_train.model.report import Report, RunDetail
from hpc_train.model.submission import JobState
from hpc_train.reports.formats.page.tables import Grid, point_words, text_of
from hpc_train.reports.point_and_series_names import counted, series_heading, short_series
from hpc_train.reports.value_format import ABSENT, significant, whole

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
