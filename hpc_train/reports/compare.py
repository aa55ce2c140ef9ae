"""Two sides, each an input of a report -> the report that compares them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hpc_train.base.errors import ReportError, newer_version
from hpc_train.base.files import read_regular
from hpc_train.base.value import Value
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.report import Report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.runs.conditions import OF_SITES, differences
from hpc_train.runs.run import Run
from hpc_train.scaling.run_flags import flag_of

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.reports.value_format import Row

SCHEMA = 1
_NAMED = r"[A-Za-z_][\w.]*="
_REPORT = re.compile(rb'\s{0,9}\{\s{0,9}"schema": ?\d{1,9},\s{0,9}"name": ')
_SELECTION = re.compile(rf"^(?P<word>.+):(?P<pairs>{_NAMED}.*)", re.DOTALL)


class CompareOptions(Value, frozen=True, kw_only=True):
    """Options: differences within `min_effect` are ignored; fields that may differ."""

    min_effect: float | None = None
    allow_mixed: tuple[str, ...] = ()


class Side(NamedTuple):
    """One side: its run table, the folders of its runs, if any, and its points with flags."""

    name: str
    runs: pd.DataFrame
    own: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()
    unreadable: bool = False
    points: Sequence[Row] = ()


class _StoredPoint(msgspec.Struct):
    """What names a point of a stored report, and its flags as texts."""

    series: str
    nodes: float | None = None
    gpus_per_node: float | None = None
    tasks_per_node: float | None = None
    ranks: float | None = None
    gpus: float | None = None
    flags: tuple[str, ...] = ()


class ComparedReport(NamedTuple):
    """The report, whether it is incomplete, and the points without a verdict."""

    report: Report
    partial: bool
    undecided: tuple[str, ...]


def compare(a: str, b: str, search: Search, options: CompareOptions) -> ComparedReport:
    """Compare B with A, point by point.

    Raises:
        HpcTrainError: a side does not exist, is empty, or has no selected run.
    """
    from hpc_train.reports.comparison_report import ComparisonInput, comparison_report, undecided
    from hpc_train.reports.value_format import plain_rows
    from hpc_train.scaling.caveats import apart_sides
    from hpc_train.scaling.comparison import Demands, comparison_frame

    _check(options)
    sides = [side(word, search, options.allow_mixed) for word in (a, b)]
    first, second = (one.runs for one in sides)
    demands = Demands(min_effect=options.min_effect, allow_mixed=options.allow_mixed)
    points = comparison_frame(first, second, demands)
    report = comparison_report(
        ComparisonInput(
            names=_names(a, b),
            points=points,
            runs=(first, second),
            side_points=(sides[0].points, sides[1].points),
            settings=differences(
                sides[0].own, sides[1].own, [_conditions(r) for r in (first, second)]
            ),
            notes=tuple(
                f"{n}: {text}" for n, s in zip("AB", sides, strict=True) for text in s.notes
            ),
            of_sites=OF_SITES,
            min_effect=options.min_effect,
            allow_mixed=options.allow_mixed,
            apart=apart_sides(first, second),
        )
    )
    states = {str(row["state"]) for row in report.run_rows}
    unfinished = bool(states - {"COMPLETED", "EXCLUDED"}) or not states
    partial = unfinished or any(one.unreadable for one in sides)
    report_with_state = msgspec.structs.replace(report, partial=partial)
    return ComparedReport(report_with_state, partial, tuple(undecided(plain_rows(points))))


def _conditions(runs: pd.DataFrame) -> list[dict[str, str]]:
    """Return the recorded conditions of each run, with the transport that its logs show."""
    stated = runs["conditions"] if "conditions" in runs else ()
    used = runs["transport"] if "transport" in runs else [""] * len(runs)
    pairs = [(own, name) for own, name in zip(stated, used, strict=False) if isinstance(own, dict)]
    return [{**own, "transport": name} if name else own for own, name in pairs]


def _names(a: str, b: str) -> tuple[str, str]:
    """Return the names of the sides, without folders if they differ."""
    short = [word.rstrip("/").rpartition("/")[2] for word in (a, b)]
    return (short[0], short[1]) if short[0] and short[1] and short[0] != short[1] else (a, b)


def side(word: str, search: Search, allow_mixed: tuple[str, ...] = ()) -> Side:
    """Return the runs of an argument: an input of `report`, its JSON, `STUDY:launcher=srun`.

    Raises:
        HpcTrainError: it does not exist, or no run was selected.
    """
    from hpc_train.reports.value_format import plain_rows
    from hpc_train.scaling.run_selection import selected

    name, pairs = selection(word)
    whole = _stored(Path(name)) or _read_side(name, search, allow_mixed)
    if not pairs:
        return whole
    runs = selected(whole.runs, pairs, word)
    ids = set(runs["run_id"])
    own = tuple(run for run in whole.own if run.folder.run_id in ids)
    keys = {_key(row) for row in plain_rows(whole.runs) if row["run_id"] in ids}
    points = [row for row in whole.points if _key(row) in keys]
    return whole._replace(name=word, runs=runs, own=own, points=points)


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("series", "nodes", "gpus_per_node", "tasks_per_node"))


def selection(word: str) -> tuple[str, dict[str, str]]:
    """Split `STUDY:launcher=srun,nodes=2` at its last colon, unless there is such a file."""
    match = _SELECTION.fullmatch(word)
    if match is None or Path(word).exists():
        return word, {}
    pairs = re.split(rf",(?={_NAMED})", match["pairs"])
    return match["word"], dict(pair.split("=", 1) for pair in pairs)


def _read_side(word: str, search: Search, allow_mixed: tuple[str, ...]) -> Side:
    from hpc_train.reports.value_format import plain_rows
    from hpc_train.scaling.implausible_values import with_implausible
    from hpc_train.scaling.runs import run_frame
    from hpc_train.scaling.speedup import speedup_frame
    from hpc_train.scaling.split_series import separated

    inputs = report_inputs([word], search)
    # The batch is not a condition: it only has to be equal on both sides of a point.
    conditions = tuple(name for name in allow_mixed if name != "global_batch")
    study = msgspec.structs.replace(inputs.study, allow_mixed=conditions)
    runs, notes = separated(run_frame(study, inputs.records), study)
    runs = with_implausible(runs)
    # A comparison needs no regime: batches that contradict the declared one are no error here.
    points = plain_rows(speedup_frame(runs, msgspec.structs.replace(study, scaling=None)))
    return Side(word, runs, inputs.own, notes, bool(inputs.unreadable), points)


def _stored(path: Path) -> Side | None:
    """Return the runs of a report that was written as JSON; None for any other file."""
    content = stored_report(path)
    if content is None:
        return None
    from hpc_train.scaling.run_selection import stored_runs

    if not content["runs"]:
        raise ReportError(f"{path}: a report without runs")
    try:
        found = msgspec.convert(content["rows"], list[_StoredPoint])
    except msgspec.ValidationError as failure:
        raise ReportError(f"{path}: rows: {failure}") from None
    own = [msgspec.structs.asdict(point) for point in found]
    points = [{**row, "flags": [f for text in row["flags"] if (f := flag_of(text))]} for row in own]
    return Side(str(path), stored_runs(content["runs"], str(path)), points=points)


def stored_report(path: Path) -> dict[str, Any] | None:
    """Return a report that was written as JSON; None for any other file.

    Raises:
        ReportError: it is a comparison, was written by a newer hpctrain, or is cut.
    """
    if path.suffix != ".json" or not path.is_file():
        return None
    content = _json(path)
    if not isinstance(content, dict) or not {"schema", "rows", "runs"} <= set(content):
        return None
    if "differences" in content:
        raise ReportError(f"{path}: a comparison cannot be compared; use a report or a study")
    if content["schema"] != SCHEMA:
        raise ReportError(*newer_version(str(path), content["schema"], SCHEMA))
    return content


def _json(path: Path) -> Any:
    """Return the contents of a JSON file; None for others, which the reader of logs refuses."""
    try:
        content = read_regular(path)
    except OSError:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        if _REPORT.match(content):
            message = f"{path}: a report that is cut or damaged: not valid JSON"
            raise ReportError(
                message, "write it again: hpctrain report STUDY -o FILE.json"
            ) from None
        return None


def _check(options: CompareOptions) -> None:
    effect = options.min_effect
    if effect is not None and not 0 < effect < 1:
        raise ReportError(f"--min-effect {effect:g}: must be between 0 and 1; 0.02 is 2 %")
