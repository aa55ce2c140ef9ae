"""Tables of a study and its laws -> the plain rows that figures show, and how each series looks."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.base.metrics import BASIS_COLUMNS
from hpc_train.reports.report import OK
from hpc_train.reports.words import Row, SizeUnit, plain_rows, size_unit
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.report_options import SCREEN, Paper
from hpc_train.scaling.run_flags import FlagCode
from hpc_train.scaling.scaling_fits import Fit

if TYPE_CHECKING:
    import pandas as pd

# After Okabe and Ito, darker, so that a line and a text have a contrast of 4.5 on white. For
# colour-blind readers, too, any two differ (CIELAB, colour vision after Machado et al. 2009).
COLOURS = (
    "#0068a6", "#b84600", "#00755a", "#9a4b83", "#4d3800",
    "#44505e", "#000000", "#3a10d8", "#860933", "#c913b9",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Any, ...] = (
    "-", "--", "-.", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)),
    (0, (1, 3)), (0, (8, 2, 2, 2)), (0, (5, 1, 1, 1, 1, 1, 1, 1)),
)  # fmt: skip
MOST_SERIES = len(COLOURS)
# From this number of series on, each has a panel of its own.
SMALL_MULTIPLES = 7
# Points (1/72 inch) between the intervals of two series at a size, and from first to last.
APART, SPREAD = 3.0, 10.0
# Share of the axis beyond the first and the last size.
MARGIN = 0.07
# Points: the shift of the runs of the first series; markers of a single series, of the first of
# several, and by how much each further one is smaller.
RUNS, ALONE, LARGEST, SMALLER = 5.0, 6.0, 7.0, 0.6
# Width in inches of paper from which on markers have their full size.
FULL = 6.0
# Flags that a figure does not mark: without an interval they are seen.
UNMARKED = frozenset({
    FlagCode.ONE_RUN, FlagCode.ONE_BASELINE_RUN, FlagCode.NO_SPREAD,
    FlagCode.WHOLE_SECONDS,
})  # fmt: skip
SIZE = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus")
OF_RUNS = (
    "run_id", "series", "state", "problem", *SIZE, "step_time_s",
    *BASIS_COLUMNS.values(),
)  # fmt: skip


class Style(NamedTuple):
    """Style of one series; `beside` and `runs` shift marks sideways, in points of the page.

    `beside`: intervals, boxes and hollow markers, `runs`: single runs. Lines and means are never
    shifted; where series are equal, the markers (`points`) differ in size.
    """

    series: str
    colour: str
    marker: str
    dashes: Any
    beside: float
    runs: float
    points: float


class Measured(NamedTuple):
    """A row for each run, point, run and node; and the laws of each series."""

    runs: pd.DataFrame
    points: pd.DataFrame
    laws: tuple[Fit, ...]
    nodes: pd.DataFrame


class PlotData(NamedTuple):
    """The rows of one study for the panels; each has its `size` in `unit`, or None.

    `runs` and `points` are those of the series that are drawn (`styles`), `every_run` is the whole
    table; `all_series` also counts what is not drawn. `apart` are the points of the
    page between two series. A run has its `point`.
    """

    study: ExpectedStudy
    runs: Sequence[Row]
    points: Sequence[Row]
    unit: SizeUnit
    styles: Sequence[Style]
    sizes: Sequence[int]
    apart: float
    laws: Sequence[Fit]
    nodes: pd.DataFrame
    every_run: pd.DataFrame
    all_series: int
    paper: Paper

    @property
    def many(self) -> bool:
        """Whether there are too many series for one panel."""
        return len(self.styles) >= SMALL_MULTIPLES

    def own(self, style: Style) -> list[Row]:
        """Return the points of one series."""
        return [row for row in self.points if row["series"] == style.series]

    def own_runs(self, style: Style) -> list[Row]:
        """Return the runs of one series that have a result."""
        return [r for r in self.runs if r["series"] == style.series and r["state"] == OK]

    def empty(self, style: Style) -> list[Row]:
        """Return the points of one series that have a size but no run with a result."""
        return [row for row in self.own(style) if row["size"] and not row["n_ok"]]

    def gaps(self, style: Style) -> list[int]:
        """Return the sizes at which one series has no result."""
        there = {row["size"] for row in self.own(style) if row["n_ok"]}
        return [row["size"] for row in self.empty(style) if row["size"] not in there]


def plot_data_of(study: ExpectedStudy, measured: Measured, paper: Paper = SCREEN) -> PlotData:
    """Return the first series of a study."""
    series = list(dict.fromkeys(measured.points["series"]))
    shown = series[:MOST_SERIES]
    own = measured.runs[measured.runs["series"].isin(shown)]
    known = [name for name in OF_RUNS if name in own.columns]
    points = plain_rows(measured.points[measured.points["series"].isin(shown)])
    unit = size_unit(plain_rows(measured.points[[*SIZE]]))
    for row in points:
        row["size"] = row[unit.key]
    runs = plain_rows(own[known].assign(size=own[unit.key]))
    point = {point_of(row): row for row in points}
    for run in runs:
        run["point"] = point[point_of(run)]
        run["work"] = run["point"]["work"]
    sizes = sorted({row["size"] for row in points if row["size"]}) or [1]
    scale = min(1.0, max(0.6, (paper.width or FULL) / FULL))
    count = len(shown) if len(shown) < SMALL_MULTIPLES else 1
    apart = min(APART, SPREAD / max(1, count - 1))
    styles = [
        Style(
            series=name,
            colour=COLOURS[i],
            marker=MARKERS[i],
            dashes=DASHES[i],
            beside=apart * (i - (count - 1) / 2) if count > 1 else 0.0,
            runs=scale * RUNS + (apart * i if count > 1 else 0.0),
            points=scale * (LARGEST - SMALLER * i if count > 1 else ALONE),
        )
        for i, name in enumerate(shown)
    ]
    return PlotData(
        study=study,
        runs=runs,
        points=points,
        unit=unit,
        styles=styles,
        sizes=sizes,
        apart=apart,
        laws=[law for law in measured.laws if law.series in shown],
        nodes=measured.nodes,
        every_run=measured.runs,
        all_series=len(series),
        paper=paper,
    )


def limits(sizes: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a log2 axis of sizes, with space for marks beside the first and last."""
    room = 2 ** max(MARGIN * log2(sizes[-1] / sizes[0]), 0.25)
    return sizes[0] / room, sizes[-1] * room


def is_flagged(row: Row) -> bool:
    """Whether a point has a flag on more than the number of its runs."""
    return any(flag.code not in UNMARKED for flag in row["flags"])


def point_of(row: Row) -> tuple[Any, ...]:
    """Return the key of the point of a run or of a row of the point table."""
    return (row["series"], *(row[name] for name in SIZE))


def usable(row: Row, column: str) -> bool:
    """Whether a row has a size, and a value above zero."""
    return bool(row["size"]) and row[column] is not None and row[column] > 0
