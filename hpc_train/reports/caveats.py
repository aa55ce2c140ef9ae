"""Flags of points, and what the nodes and rates of runs show -> the caveats of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from hpc_train.reports.report import CAVEATS, Row, counted, first_of, names, plain_rows
from hpc_train.scaling.run_flags import IMPLAUSIBLE, FlagCode

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.scaling.caveats import ApartPoints, SlowRun

Marks = list[tuple[Row, str]]
NOT_OK = "some runs are not ok"
MEANING = {
    FlagCode.ONE_RUN: "n=1, so no interval",
    FlagCode.ONE_BASELINE_RUN: "one baseline run, so no interval",
    FlagCode.NO_SPREAD: "all repetitions are equal, so their spread is not known",
    FlagCode.ONE_SESSION: "one session for each size",
    FlagCode.SHORT: "few measured steps",
    FlagCode.SLOW_STEPS: "some steps take much longer (evaluations, checkpoints, a long warm-up?)",
    FlagCode.GATE: "below the gate",
    FlagCode.RANKS: "ranks without steps",
    FlagCode.SUPERLINEAR: "superlinear speedup",
    FlagCode.VARIES: "contradicting values in a run",
    FlagCode.ACCURACY: "accuracy differs from the baseline",
    FlagCode.LOSS: "loss differs from the baseline",
    FlagCode.WHOLE_SECONDS: "times in whole seconds",
    FlagCode.UNMEASURED: "ok runs without a result, not compared",
    FlagCode.NOT_FINITE: "values that are not finite",
    FlagCode.REQUEUED: "runs that were restarted",
    FlagCode.EFFICIENCY: "implausible efficiency",
    FlagCode.CONTRADICTION: "rate, step time and batch contradict one another",
    FlagCode.MEMORY: "more memory than the GPU has",
    FlagCode.MFU: "more operations than the GPU can do",
    FlagCode.UNIT: "the unit of a value may be wrong",
    FlagCode.THROTTLED: "GPUs were throttled",
    FlagCode.TRANSPORT: "the transport differs",
}
# As far apart as values of one series whose unit is doubted.
MOST_TIMES = 200.0
SAID = frozenset({FlagCode.ONE_RUN, FlagCode.ONE_BASELINE_RUN})
_ALIKE = (
    "share no node, and their repetitions are on the same nodes, so that a difference between "
    "nodes looks like one between {}"
)


def run_caveats(
    apart: Sequence[ApartPoints], slow: Sequence[SlowRun], frame: pd.DataFrame
) -> Iterator[str]:
    """Yield that compared points are on other nodes, and which runs are slow."""
    points = plain_rows(frame) if apart or slow else []
    name = names(points)
    if apart:
        shown = (
            f"{name(points[one.point])} on {first_of(one.nodes)}, {name(points[one.other])} on "
            f"{first_of(one.others)}"
            for one in apart
        )
        said = _ALIKE.format("the points")
        yield f"{CAVEATS}points that are compared {said}: {first_of(shown, '; ')}."
    if slow:
        shown = (
            f"{one.run_id} took {one.times:.3g} times as long as the median of the "
            f"{counted(one.runs, 'run')} at {name(points[one.point])}"
            for one in slow
        )
        what = "a run is" if len(slow) == 1 else "runs are"
        yield (
            f"{CAVEATS}{what} slower than the spread explains: {first_of(shown, '; ')}. "
            "Find the cause, or exclude the run: --exclude RUN=REASON."
        )


def sides_apart(
    apart: Sequence[ApartPoints], name: Callable[[Row], str], points: Sequence[Row]
) -> Iterator[str]:
    """Yield the caveat of a comparison whose points share no node; `points` are its rows."""
    if apart:
        shown = (
            f"{name(points[one.point])}: A on {first_of(one.nodes)}, B on {first_of(one.others)}"
            for one in apart
        )
        yield f"{CAVEATS}A and B {_ALIKE.format('A and B')}: {first_of(shown, '; ')}."


def implausible_of_side(points: Sequence[Row]) -> Iterator[str]:
    """Yield the lines on implausible values as parts of a sentence about one of two sides."""
    for line in flag_caveats(points, implausible=True):
        yield line.removeprefix(CAVEATS).removesuffix(".")


def implausible_ratios(points: Sequence[Row]) -> Iterator[tuple[Row, float]]:
    """Yield the points of a comparison whose ratio is too large for a change, and the ratio."""
    for row in points:
        ratio = row["ratio"]
        if ratio is not None and not 1 / MOST_TIMES < ratio < MOST_TIMES:
            yield row, ratio


def flag_caveats(points: Sequence[Row], *, implausible: bool = False) -> Iterator[str]:
    """Yield a line for each kind of implausible value, or of other flag and for runs not ok."""
    kinds: dict[str, Marks] = {}
    for row in points:
        if not implausible and row["not_ok"]:
            found = f"{row['n_ok']} of {row['n_submitted']}: {row['not_ok']}"
            kinds.setdefault(NOT_OK, []).append((row, found))
        for flag in row["flags"]:
            if (flag.code in IMPLAUSIBLE) == implausible:
                detail = "" if flag.code in SAID else flag.detail
                kinds.setdefault(MEANING[flag.code], []).append((row, detail))
    name = names(points)
    for meaning, marks in kinds.items():
        rows = list({id(row): row for row, _ in marks}.values())
        detail = f" ({marks[0][1]})" if marks[0][1] else ""
        if len({about for _, about in marks}) > 1:
            where, detail = first_of((f"{name(row)} ({about})" for row, about in marks), "; "), ""
        elif len(rows) == len(points):
            every = {1: "the only point", 2: "both points"}
            where = every.get(len(rows), f"all {len(rows)} points")
        else:
            where = first_of(map(name, rows))
        yield f"{CAVEATS}{meaning}{detail}: {where}."
