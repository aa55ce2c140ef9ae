"""Rows of a comparison -> its tables: the points, what differs, the runs without a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.base.metrics import BASES
from hpc_train.reports.caveats import MEANING, implausible_of_side, implausible_ratios, sides_apart
from hpc_train.reports.fastest_series_table import ratio_record
from hpc_train.reports.gates import quality_lost
from hpc_train.reports.point_and_series_names import series_heading, short_series, size, under
from hpc_train.reports.report import CAVEATS, Cell, Column, Report, ReportTable
from hpc_train.reports.study_tables import PointColumn
from hpc_train.reports.value_format import (
    ABSENT,
    Row,
    for_programs,
    level_word,
    levels_word,
    plain_rows,
    significant,
    whole,
    with_limits,
)
from hpc_train.scaling.run_flags import FlagCode

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.scaling.caveats import ApartPoints

OK = "COMPLETED"
SIZES = ("nodes", "gpus_per_node", "tasks_per_node")


class ComparisonInput(NamedTuple):
    """Data of a report on two sides.

    `settings`: name, values of A, values of B of the settings that differ; `side_points`: the
    points of each side as in its report, with their flags; `apart`: the points whose two sides
    have no common node; `of_sites`: the names of settings that a site gives to a job.
    """

    names: tuple[str, str]
    points: pd.DataFrame
    runs: tuple[pd.DataFrame, pd.DataFrame]
    settings: Sequence[tuple[str, str, str]]
    notes: tuple[str, ...] = ()
    confidence: float = 0.95
    min_effect: float | None = None
    allow_mixed: tuple[str, ...] = ()
    side_points: tuple[Sequence[Row], Sequence[Row]] = ((), ())
    apart: tuple[ApartPoints, ...] = ()
    of_sites: tuple[str, ...] = ()


def points_table(points: Sequence[Row], found: ComparisonInput) -> ReportTable:
    """Return a row per point."""
    shown = [item for item in _columns(points, found) if _is_needed(item, points)]
    return ReportTable(
        title="Points",
        columns=tuple(item.column for item in shown),
        rows=tuple(
            tuple(Cell(text=c.text(row), value=row.get(c.column.key)) for c in shown)
            for row in points
        ),
        key="rows",
        records=tuple(map(ratio_record, points)),
    )


def _columns(points: Sequence[Row], found: ComparisonInput) -> list[PointColumn]:
    bases = {BASES[row["basis"]].in_heading for row in points}
    unit = f"\n{bases.pop()}" if len(bases) == 1 else ""
    axis = series_heading(points)
    sizes = (("nodes", "nodes"), ("gpus_per_node", "gpus/\nnode"),
             ("tasks_per_node", "tasks/\nnode"), ("ranks", "ranks"))  # fmt: skip
    return [
        PointColumn(
            Column(key="series", heading=axis or "series", align="left"),
            lambda row: short_series(row["series"], axis),
        ),
        *(PointColumn(Column(key=key, heading=heading), _count(key)) for key, heading in sizes),
        PointColumn(
            Column(key="n", heading="ok\nA, B"), lambda row: f"{_ok(row, 'a')}, {_ok(row, 'b')}"
        ),
        PointColumn(Column(key="a", heading=f"A{unit}", drop=4), lambda row: significant(row["a"])),
        PointColumn(Column(key="b", heading=f"B{unit}", drop=3), lambda row: significant(row["b"])),
        PointColumn(
            Column(key="ratio", heading=f"B/A\n[{levels_word(points, found.confidence)}]"),
            lambda row: with_limits(row, "ratio", 3),
        ),
        PointColumn(
            Column(key="accuracy_change_pp", heading="accuracy\nchange", drop=2), _accuracy
        ),
        PointColumn(Column(key="verdict", heading="verdict", align="left"), _verdict),
    ]


def _is_needed(item: PointColumn, points: Sequence[Row]) -> bool:
    column = item.column
    values = {item.text(row) for row in points}
    if column.key == "ranks" and any(len({row[k] for row in points}) > 1 for k in SIZES):
        return False
    if column.key in ("series", *SIZES[1:], "ranks"):
        return len(values) > 1
    return column.key != "accuracy_change_pp" or values != {ABSENT}


def _count(key: str) -> Callable[[Row], str]:
    return lambda row: whole(row[key])


def _ok(row: Row, side: str) -> str:
    done, asked = row[f"n_{side}"], row[f"submitted_{side}"]
    return f"{done}" if done == asked else f"{done}/{asked}"


def _accuracy(row: Row) -> str:
    change = row["accuracy_change_pp"]
    return ABSENT if change is None else f"{change:+.2f}"


def _verdict(row: Row) -> str:
    """Return a short form of the verdict; the summary has the full form."""
    return "no difference" if row["verdict"].startswith("no diff") else str(row["verdict"])


def differences_table(found: ComparisonInput) -> ReportTable:
    """Return a row per setting that differs between the sides."""
    keys = ("setting", "a", "b")
    heads = ("setting", "A", "B")
    return ReportTable(
        title="Settings that differ",
        columns=tuple(
            Column(key=key, heading=head, align="left", prose=key != "setting")
            for key, head in zip(keys, heads, strict=True)
        ),
        rows=tuple(tuple(Cell(text=t, value=t) for t in row) for row in found.settings),
        key="differences",
        records=tuple(dict(zip(keys, row, strict=True)) for row in found.settings),
    )


def runs_table(found: ComparisonInput) -> ReportTable:
    """Return the runs that are not ok; `records` holds every run of both sides."""
    names = ("side", "run_id", "state", "problem")
    rows = [
        {"side": side, **for_programs(row)}
        for side, runs in zip("AB", found.runs, strict=True)
        for row in plain_rows(runs)
    ]
    return ReportTable(
        title="Runs without a result",
        columns=tuple(
            Column(key=name, heading=name, align="left", prose=name == "problem") for name in names
        ),
        rows=tuple(
            tuple(Cell(text=str(row[name] or ABSENT), value=row[name]) for name in names)
            for row in rows
            if row["state"] != OK
        ),
        key="runs",
        records=tuple(rows),
    )


BETTER, WORSE, NOT_IN_B = "B better", "B worse", "not in B"
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
MANY = 8


def comparison_report(found: ComparisonInput) -> Report:
    """Return the report: summary, each point of either side, then the settings that differ.

    As JSON it has `rows`, one per point: sizes, `basis`, `a` and `b` (rates: per second, times: s),
    `ratio` as {"value", "low", "high"} or null and its `level`, `verdict`, `why`, runs and
    accuracy of both sides; `differences` with `setting`, `a`, `b`; `runs` of both sides, each with
    its `side`. `checks` are implausible values, the points at which B is worse, or that no point
    has a verdict.
    """
    points = plain_rows(found.points)
    wrong = tuple(_implausible(points, found))
    a, b = found.names
    return Report(
        title=f"A ({a}) against B ({b})",
        summary=(
            *_differing_sites(found),
            *(f"{CAVEATS}{line}." for line in wrong),
            *sides_apart(found.apart, lambda row: _name(row, points), points),
            *_caveats(points),
            *_answers(points),
            *(
                f"{side} is {name}: {int((runs['state'] == OK).sum())} of {len(runs)} runs ok."
                for side, name, runs in zip("AB", found.names, found.runs, strict=True)
            ),
        ),
        tables=(points_table(points, found), differences_table(found), runs_table(found)),
        notes=(*_methods(points, found), *found.notes),
        checks=(*wrong, *_checks(points)),
        name=f"{a} against {b}",
        conditions={
            "a": a,
            "b": b,
            "confidence": found.confidence,
            "interval": "Welch on logarithms of two samples; the replicate is the run",
            "min_effect": found.min_effect,
            "allow_mixed": list(found.allow_mixed),
        },
    )


def _differing_sites(found: ComparisonInput) -> Iterator[str]:
    """Yield how the sites differ, if the sides are of different ones."""
    sites = [row for row in found.settings if row[0] == "site"]
    if not sites:
        return
    _, a, b = sites[0]
    own = [row for row in found.settings if row[0] in found.of_sites and row not in sites]
    differing = ", ".join(f"{name} ({one} and {other})" for name, one, other in own)
    in_what = f" differ in {differing}" if own else " differ in no recorded hardware or version"
    yield f"The sites {a} and {b}{in_what}."


def _implausible(points: Sequence[Row], found: ComparisonInput) -> Iterator[str]:
    """Yield the implausible values of each side, and the ratios that are too large for a change."""
    for side, own in zip("AB", found.side_points, strict=True):
        yield from (f"{side}: {line}" for line in implausible_of_side(own))
    for row, ratio in implausible_ratios(points):
        unit = MEANING[FlagCode.UNIT]
        yield f"{unit} (B/A is {significant(ratio)}): {_name(row, points)}"


def _answers(points: Sequence[Row]) -> Iterator[str]:
    """Yield the points at which B is faster, slower, or neither; then those not compared."""
    of = [row for row in points if row["ratio"] is not None]
    for verdict, word, change in ((BETTER, "faster", 1), (WORSE, "slower", -1)):
        own = [row for row in of if row["verdict"] == verdict]
        if own:
            by = _span([change * (row["ratio"] - 1) for row in own])
            where = _at(own, of) + _assumed(own)
            yield f"B is {word} than A at {len(own)} of {_points(of)}, by {by}{where}."
    for verdict in dict.fromkeys(row["verdict"] for row in of):
        own = [row for row in of if row["verdict"] == verdict]
        if verdict not in (BETTER, WORSE):
            said = UNDECIDED.get(verdict, verdict)
            where = _at(own, of) + _assumed(own)
            yield f"{said[0].upper()}{said[1:]}: {len(own)} of {_points(of)}{where}."
    without = [row for row in points if row["ratio"] is None]
    if without:
        named = "; ".join(f"{_name(row, points)} ({row['why']})" for row in without[:MANY])
        more = f" and {len(without) - MANY} more" if len(without) > MANY else ""
        yield f"Not compared: {named}{more}."
    if not points:
        yield "Neither side has a run."


def _points(rows: Sequence[Row]) -> str:
    return f"{len(rows)} point{'s' if len(rows) != 1 else ''}"


def _span(values: Sequence[float]) -> str:
    """Return `4 to 9 %`, with a decimal below ten."""
    low, high = (f"{100 * v:.1f}" if abs(v) < 0.1 else f"{100 * v:.0f}" for v in
                 (min(values), max(values)))  # fmt: skip
    return f"{low} %" if low == high else f"{low} to {high} %"


def _at(own: Sequence[Row], of: Sequence[Row]) -> str:
    if len(own) == len(of) or len(own) > MANY:
        return ""
    return f" ({', '.join(_name(row, of) for row in own)})"


def _name(row: Row, points: Sequence[Row]) -> str:
    return f"{size(row, points)}{under(row['series'])}"


def _caveats(points: Sequence[Row]) -> Iterator[str]:
    worse = [(row, lost) for row in points if (lost := quality_lost(row))]
    if worse:
        row, lost = worse[0]
        where = f"at {len(worse)} of {_points(points)}"
        yield f"{CAVEATS}B is not as good as A {where}: {lost} at {_name(row, points)}."
    for row in (row for row in points if not quality_lost(row)):
        change, limit = row["accuracy_change_pp"], row["accuracy_limit_pp"]
        # Repetitions with one seed agree to the last digit; the noise is then not measured.
        if change is not None and limit is not None and abs(change) > limit:
            yield (
                f"Caveats: accuracy of B differs from that of A ({change:+.2f} points, noise "
                f"explains {limit:.2f}): {_name(row, points)}."
            )


def _assumed(points: Sequence[Row]) -> str:
    known = all(None not in (row["batch_a"], row["batch_b"]) for row in points)
    return "" if known else ", assuming the same batch in A and B"


def _checks(points: Sequence[Row]) -> Iterator[str]:
    """Yield the points at which B is worse or missing; a check without any verdict fails."""
    yield from (
        f"B worse: {_name(row, points)}: {with_limits(row, 'ratio', 3)} times the speed of A"
        for row in points
        if row["verdict"] == WORSE
    )
    for row in points:
        if lost := quality_lost(row):
            yield f"B worse: {_name(row, points)}: {lost}"
        if row["why"] == NOT_IN_B:
            yield f"missing: {_name(row, points)}: {NOT_IN_B}"
    if all(row["ratio_low"] is None for row in points):
        reasons = "; ".join(dict.fromkeys(row["why"] for row in points)) or "there is no run"
        yield f"no point has a verdict: {reasons}"


def undecided(points: Sequence[Row]) -> Iterator[str]:
    """Yield the points that a check could not decide, with reasons."""
    for row in points:
        if row["ratio_low"] is None:
            yield f"not decided: {_name(row, points)}: {row['why']}"


def _methods(points: Sequence[Row], found: ComparisonInput) -> Iterator[str]:
    if any(row["ratio"] is not None for row in points):
        yield METHOD
    several = sum(row["ratio_low"] is not None for row in points)
    if several > 1:
        levels = levels_word(points, found.confidence)
        yield STEPS.format(levels=levels, points=several, confidence=level_word(found.confidence))
    if found.min_effect is not None:
        yield f"Differences of up to {100 * found.min_effect:g} % count as no difference."
    if found.allow_mixed:
        yield f"Allowed to differ: {', '.join(found.allow_mixed)}."
