"""Two sides, each an input of a report -> the report that compares them point by point."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hpc_train.base.errors import ReportError, newer_version
from hpc_train.base.files import read_regular
from hpc_train.base.metrics import BASES
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.gates import quality_lost
from hpc_train.reports.report import (
    ABSENT,
    CAVEATS,
    LEVEL,
    MEANING,
    NAMED,
    OK,
    Column,
    Report,
    ReportTable,
    Row,
    Shown,
    column_of,
    counted,
    first_of,
    for_programs,
    implausible_of_side,
    implausible_ratios,
    levels_word,
    names,
    plain_rows,
    series_heading,
    short_series,
    sides_apart,
    significant,
    table_of,
    with_limits,
    words_of,
)
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.tables import ratio_record, size_columns
from hpc_train.runs.conditions import OF_SITES, differences
from hpc_train.runs.run import Run
from hpc_train.scaling.caveats import with_implausible
from hpc_train.scaling.comparison import BETTER, WORSE, apart_sides, comparison_frame
from hpc_train.scaling.measurements import FlagCode, flag_of
from hpc_train.scaling.points import CONFIDENCE
from hpc_train.scaling.runs import run_frame, stored_runs
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.split_series import separated

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
_REPORT = re.compile(rb'\s{0,9}\{\s{0,9}"schema": ?\d{1,9},')
SIZES = ("nodes", "gpus_per_node", "tasks_per_node")
NOT_IN_B = "not in B"
UNDECIDED = {
    "n=1: no verdict": "No verdict, because n=1 has no interval",
    "no spread: no verdict": "No verdict, because equal repetitions have no interval",
}
METHOD = (
    "B/A is the ratio of rates (for times the inverse ratio), so that more than 1 means that B is "
    "faster; "
    "its interval is Welch's on the logarithms of both samples; the replicate is the run."
)
STEPS = (
    "Each interval is at the level at which its point is decided, {levels} (Holm: {points} points "
    "are compared at once, and fewer after each decision; all verdicts together hold at "
    "{confidence})."
)


class Side(NamedTuple):
    """One side: its run table, the folders of its runs, if any, and its points with flags."""

    runs: pd.DataFrame
    own: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()
    unreadable: bool = False
    points: Sequence[Row] = ()


class _StoredRow(msgspec.Struct):
    """What a point and a run of a stored report have in common; checked only."""

    series: str
    nodes: float | None = None
    gpus_per_node: float | None = None
    tasks_per_node: float | None = None
    ranks: float | None = None
    gpus: float | None = None
    repetition: float | None = None
    flags: tuple[str, ...] = ()


class _StoredReport(msgspec.Struct):
    """The rows and the runs of a stored report."""

    rows: list[dict[str, Any]]
    runs: list[dict[str, Any]]


def compare(
    a: str,
    b: str,
    search: Search,
    allow_mixed: tuple[str, ...] = (),
) -> Report:
    """Compare B with A, point by point.

    As JSON the report has `rows`, one per point: sizes, `basis`, `a` and `b` (rates: per second,
    times: s), `ratio` as {"value", "low", "high"} or null and its `level`, `verdict`, `why`, runs
    and accuracy of both sides; `differences` with `setting`, `a`, `b`; `runs` of both sides, each
    with its `side`. `checks` are implausible values, the points at which B is worse, or that no
    point has a verdict.

    Raises:
        HpcTrainError: a side does not exist, or is empty.
    """
    sides = [side(word, search, allow_mixed) for word in (a, b)]
    first, second = (one.runs for one in sides)
    points = plain_rows(comparison_frame(first, second, allow_mixed=allow_mixed))
    conditions = [_conditions(one.runs) for one in sides]
    settings = differences(sides[0].own, sides[1].own, conditions)
    wrong = tuple(_implausible(points, sides))
    short = [word.rstrip("/").rpartition("/")[2] for word in (a, b)]
    a, b = short if all(short) and short[0] != short[1] else (a, b)
    apart = sides_apart(apart_sides(first, second), names(points), points)
    tables = _tables(points, settings, sides)
    states = {str(row["state"]) for row in tables[-1].records}
    unreadable = any(one.unreadable for one in sides)
    return Report(
        title=f"A ({a}) against B ({b})",
        summary=(
            *_differing_sites(settings),
            *(f"{CAVEATS}{line}." for line in wrong),
            *_caveats(points),
            *apart,
            *_answers(points),
            *(
                f"{letter} is {name}: {int((one.runs['state'] == OK).sum())} of {len(one.runs)} "
                "runs ok."
                for letter, name, one in zip("AB", (a, b), sides, strict=True)
            ),
        ),
        tables=tables,
        notes=(
            *_methods(points, allow_mixed),
            *(f"{n}: {text}" for n, one in zip("AB", sides, strict=True) for text in one.notes),
        ),
        checks=(*wrong, *_checks(points)),
        name=f"{a} against {b}",
        conditions={
            "a": a,
            "b": b,
            "confidence": CONFIDENCE,
            "interval": "Welch on logarithms of two samples; the replicate is the run",
            "allow_mixed": list(allow_mixed),
        },
        partial=bool(states - {OK, "EXCLUDED"}) or not states or unreadable,
    )


def _tables(
    points: Sequence[Row], settings: Sequence[tuple[str, str, str]], sides: Sequence[Side]
) -> tuple[ReportTable, ...]:
    """Return a row per point, per differing setting, and per run that is not ok."""
    rows = [
        {"side": letter, **for_programs(row)}
        for letter, one in zip("AB", sides, strict=True)
        for row in plain_rows(one.runs)
    ]
    failed = [row for row in rows if row["state"] != OK]
    keys = ("side", "run_id", "state", "problem")
    texts = words_of(dict(zip(keys, keys, strict=True)), ("problem",))
    headings = words_of({"setting": "setting", "a": "A", "b": "B"}, ("a", "b"))
    differing = [dict(zip(("setting", "a", "b"), row, strict=True)) for row in settings]
    return (
        _points_table(points),
        table_of("Settings that differ", "differences", headings, differing),
        table_of("Runs without a result", "runs", texts, failed, rows),
    )


def undecided(report: Report) -> tuple[str, ...]:
    """Return a line for each point of a comparison without a verdict."""
    rows = report.tables[0].records
    without = (row for row in rows if row["ratio"] is None or row["ratio"]["low"] is None)
    return tuple(f"not decided: {names(rows)(row)}: {row['why']}" for row in without)


def _conditions(runs: pd.DataFrame) -> list[dict[str, str]]:
    """Return the recorded conditions of each run, with the transport that its logs show."""
    stated = runs["conditions"] if "conditions" in runs else ()
    used = runs["transport"] if "transport" in runs else [""] * len(runs)
    pairs = [(own, name) for own, name in zip(stated, used, strict=False) if isinstance(own, dict)]
    return [{**own, "transport": name} if name else own for own, name in pairs]


def side(word: str, search: Search, allow_mixed: tuple[str, ...] = ()) -> Side:
    """Return the runs of an argument: an input of `report`, or its JSON.

    Raises:
        HpcTrainError: it does not exist.
    """
    return _stored(Path(word)) or _read_side(word, search, allow_mixed)


def _read_side(word: str, search: Search, allow_mixed: tuple[str, ...]) -> Side:
    inputs = report_inputs([word], search)
    # The batch is not a condition: it only has to be equal on both sides of a point.
    conditions = tuple(name for name in allow_mixed if name != "global_batch")
    study = msgspec.structs.replace(inputs.study, allow_mixed=conditions)
    runs, notes = separated(run_frame(study, inputs.records), study)
    runs = with_implausible(runs)
    # A comparison needs no regime: batches that contradict the declared one are no error here.
    points = plain_rows(speedup_frame(runs, msgspec.structs.replace(study, scaling=None)))
    return Side(runs, inputs.own, notes, bool(inputs.unreadable), points)


def _stored(path: Path) -> Side | None:
    """Return the runs of a report that was written as JSON; None for any other file.

    Raises:
        ReportError: it is a comparison, was written by a newer hpctrain, or is cut.
    """
    if path.suffix != ".json" or not path.is_file():
        return None
    content = read_regular(path)
    if not _REPORT.match(content):
        return None
    try:
        found = msgspec.json.decode(content, type=dict[str, Any])
        if found["schema"] != SCHEMA:
            raise ReportError(*newer_version(str(path), found["schema"], SCHEMA))
        if "differences" in found:
            raise ReportError(f"{path}: a comparison cannot be compared; use a report or a study")
        stored = msgspec.convert(found, _StoredReport)
        msgspec.convert([*stored.rows, *stored.runs], list[_StoredRow])
    except msgspec.DecodeError as failure:
        raise ReportError(
            f"{path}: a truncated or damaged report: {failure}",
            "write it again: hpctrain report STUDY -o FILE.json",
        ) from None
    if not stored.runs:
        raise ReportError(f"{path}: a report without runs")
    points = [
        {key: row.get(key) for key in ("series", *SIZES, "ranks", "gpus")}
        | {"flags": [*filter(None, map(flag_of, row.get("flags", ())))]}
        for row in stored.rows
    ]
    return Side(stored_runs(stored.runs, str(path)), points=points)


def _points_table(points: Sequence[Row]) -> ReportTable:
    """Return a row per point."""
    bases = {BASES[row["basis"]].in_heading for row in points}
    unit = f"\n{bases.pop()}" if len(bases) == 1 else ""
    axis, level = series_heading(points), levels_word(points)
    columns: list[Shown] = [
        column_of("series", axis or "series", partial(short_series, heading=axis), align="left"),
        *size_columns((*SIZES, "ranks")),
        (Column("n", "ok\nA, B"), lambda row: f"{_ok(row, 'a')}, {_ok(row, 'b')}"),
        column_of("a", f"A{unit}", significant, drop=4),
        column_of("b", f"B{unit}", significant, drop=3),
        (Column("ratio", f"B/A\n[{level}]"), lambda row: with_limits(row, "ratio", 3)),
        column_of(
            "accuracy_change_pp", "accuracy\nchange", drop=2,
            text=lambda x: ABSENT if x is None else f"{x:+.2f}",
        ),
        # The summary has the full form.
        column_of(
            "verdict", "verdict", align="left",
            text=lambda said: "no difference" if said.startswith("no diff") else said,
        ),
    ]  # fmt: skip
    needed = [one for one in columns if _is_needed(one, points)]
    return table_of("Points", "rows", needed, points, tuple(map(ratio_record, points)))


def _is_needed(one: Shown, points: Sequence[Row]) -> bool:
    key, values = one[0].key, {one[1](row) for row in points}
    if key == "ranks" and any(len({row[k] for row in points}) > 1 for k in SIZES):
        return False
    if key in ("series", *SIZES[1:], "ranks"):
        return len(values) > 1
    return key != "accuracy_change_pp" or values != {ABSENT}


def _ok(row: Row, side: str) -> str:
    done, asked = row[f"n_{side}"], row[f"submitted_{side}"]
    return f"{done}" if done == asked else f"{done}/{asked}"


def _differing_sites(settings: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Yield how the sites differ, if the sides are of different ones."""
    sites = [row for row in settings if row[0] == "site"]
    if sites:
        _, a, b = sites[0]
        own = [row for row in settings if row[0] in OF_SITES and row not in sites]
        differing = ", ".join(f"{name} ({one} and {other})" for name, one, other in own)
        in_what = f" differ in {differing}" if own else " differ in no recorded hardware or version"
        yield f"The sites {a} and {b}{in_what}."


def _implausible(points: Sequence[Row], sides: Sequence[Side]) -> Iterator[str]:
    """Yield the implausible values of each side, and the ratios that are too large for a change."""
    for letter, one in zip("AB", sides, strict=True):
        yield from (f"{letter}: {line}" for line in implausible_of_side(one.points))
    name = names(points)
    for row, ratio in implausible_ratios(points):
        yield f"{MEANING[FlagCode.UNIT]} (B/A is {significant(ratio)}): {name(row)}"


def _answers(points: Sequence[Row]) -> Iterator[str]:
    """Yield the points at which B is faster, slower, or neither; then those not compared."""
    of = [row for row in points if row["ratio"] is not None]
    in_all = counted(len(of), "point")
    changes = {BETTER: ("faster", 1), WORSE: ("slower", -1)}
    for verdict in dict.fromkeys([BETTER, WORSE, *(row["verdict"] for row in of)]):
        own = [row for row in of if row["verdict"] == verdict]
        if not own:
            continue
        where = ""
        if len(own) < len(of) and len(own) <= NAMED:
            where = f" ({', '.join(map(names(of), own))})"
        if any(None in (row["batch_a"], row["batch_b"]) for row in own):
            where += ", assuming the same batch in A and B"
        if verdict in changes:
            word, sign = changes[verdict]
            by = _span([sign * (row["ratio"] - 1) for row in own])
            yield f"B is {word} than A at {len(own)} of {in_all}, by {by}{where}."
        else:
            said = UNDECIDED.get(verdict, verdict)
            yield f"{said[0].upper()}{said[1:]}: {len(own)} of {in_all}{where}."
    without, name = [row for row in points if row["ratio"] is None], names(points)
    if without:
        named = first_of((f"{name(row)} ({row['why']})" for row in without), "; ")
        yield f"Not compared: {named}."
    if not points:
        yield "Neither side has a run."


def _span(values: Sequence[float]) -> str:
    """Return `4 to 9 %`, with a decimal below ten."""
    low, high = (
        f"{100 * v:.1f}" if abs(v) < 0.1 else f"{100 * v:.0f}" for v in (min(values), max(values))
    )
    return f"{low} %" if low == high else f"{low} to {high} %"


def _caveats(points: Sequence[Row]) -> Iterator[str]:
    name = names(points)
    worse = [(row, lost) for row in points if (lost := quality_lost(row))]
    if worse:
        row, lost = worse[0]
        where = f"at {len(worse)} of {counted(len(points), 'point')}"
        yield f"{CAVEATS}B is not as good as A {where}: {lost} at {name(row)}."
    for row in (row for row in points if not quality_lost(row)):
        change, limit = row["accuracy_change_pp"], row["accuracy_limit_pp"]
        # Repetitions with one seed agree to the last digit; the noise is then not measured.
        if change is not None and limit is not None and abs(change) > limit:
            yield (
                f"Caveats: accuracy of B differs from that of A ({change:+.2f} points, noise "
                f"explains {limit:.2f}): {name(row)}."
            )


def _checks(points: Sequence[Row]) -> Iterator[str]:
    """Yield the points at which B is worse or missing; a check without any verdict fails."""
    name = names(points)
    for row in points:
        if row["verdict"] == WORSE:
            yield f"B worse: {name(row)}: {with_limits(row, 'ratio', 3)} times the speed of A"
    for row in points:
        if lost := quality_lost(row):
            yield f"B worse: {name(row)}: {lost}"
        if row["why"] == NOT_IN_B:
            yield f"missing: {name(row)}: {NOT_IN_B}"
    if all(row["ratio_low"] is None for row in points):
        reasons = "; ".join(dict.fromkeys(row["why"] for row in points)) or "there is no run"
        yield f"no point has a verdict: {reasons}"


def _methods(points: Sequence[Row], allow_mixed: Sequence[str]) -> Iterator[str]:
    if any(row["ratio"] is not None for row in points):
        yield METHOD
    several = sum(row["ratio_low"] is not None for row in points)
    if several > 1:
        levels = levels_word(points)
        yield STEPS.format(levels=levels, points=several, confidence=LEVEL)
    if allow_mixed:
        yield f"Allowed to differ: {', '.join(allow_mixed)}."
