"""Details of runs for the page: their ends, settings and scripts.

Details that several runs share are written once and referenced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hpc_train.model.report import Report, RunDetail
from hpc_train.model.submission import JobState
from hpc_train.reports.formats.page.grids import Grid, point_words
from hpc_train.reports.numbers import ABSENT
from hpc_train.reports.words import counted, series_heading

OK = JobState.COMPLETED.value
MOST_ENDS, MOST_NAMES, MOST_SETTINGS = 200, 50, 300
LONGEST_DIAGNOSIS = 20_000
LARGEST_SCRIPTS = 1_000_000

Key = tuple[str, ...]


class End(NamedTuple):
    """An end (state and diagnosis), and the runs with it."""

    state: str
    problem: str
    diagnosis: str
    runs: Sequence[str]


class Script(NamedTuple):
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
    scripts: Sequence[Script]
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
    runs: dict[Key, list[str]] = {}
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


def _scripts(report: Report) -> tuple[list[Script], dict[str, int]]:
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
        kept.append(Script(digest, text, _few(list(dict.fromkeys(own))), len(names)))
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
        Grid("Settings of all runs", ("setting", "value", "from"), (), common),
        Grid(
            "Settings that differ", heads, (2,), variants[:MOST_SETTINGS],
            len(variants[MOST_SETTINGS:]),
        ),
        numbers,
    )  # fmt: skip


def _variants(
    details: Sequence[RunDetail], varies: Sequence[str]
) -> tuple[list[list[str]], dict[str, int]]:
    runs: dict[Key, list[str]] = {}
    for one in details if varies else ():
        if one.settings:
            own = {key: value for key, value, _ in one.settings}
            runs.setdefault(tuple(own.get(key, ABSENT) for key in varies), []).append(one.run_id)
    rows = [[str(i), str(len(n)), *key] for i, (key, n) in enumerate(runs.items(), start=1)]
    return rows, {name: i for i, names in enumerate(runs.values(), start=1) for name in names}
