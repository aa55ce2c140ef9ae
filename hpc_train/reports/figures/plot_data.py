"""Tables of a study and its laws -> the plain rows that figures show, limited in number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.base.metrics import BASIS_COLUMNS
from hpc_train.reports.figures.series_styles import SizeAxis, Style, layout, styles
from hpc_train.reports.point_and_series_names import SizeUnit, size_unit, speedup_word
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import Row, plain_rows
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.report_options import SCREEN, Paper
from hpc_train.scaling.run_flags import FlagCode
from hpc_train.scaling.scaling_fits import Fit

if TYPE_CHECKING:
    import pandas as pd

MOST_SERIES = 10
# Width in inches of paper from which on markers have their full size.
FULL = 6.0
# Flags that a figure does not mark: without an interval they are seen.
UNMARKED = frozenset({
    FlagCode.ONE_RUN, FlagCode.ONE_BASELINE_RUN, FlagCode.NO_SPREAD,
    FlagCode.WHOLE_SECONDS,
})  # fmt: skip
# If there are more, every k-th is drawn: a page with 10,000 marks in each figure is slow.
MOST_RUNS = 2000
SIZE = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus")
OF_RUNS = (
    "run_id", "series", "state", "problem", *SIZE, "step_time_s",
    *BASIS_COLUMNS.values(),
)  # fmt: skip


class PlotData(NamedTuple):
    """The rows of one study for the panels; `word` is the name of the speedup.

    Each row has its `size` in `unit`, or None.

    `runs` and `points` are those of the series that are drawn (`styles`), `every_run` is the whole
    table; `all_series` and `all_runs` (those with a result) also count what is not drawn.
    """

    study: ExpectedStudy
    runs: Sequence[Row]
    points: Sequence[Row]
    word: str
    unit: SizeUnit
    styles: Sequence[Style]
    place: SizeAxis
    laws: Sequence[Fit]
    nodes: pd.DataFrame
    every_run: pd.DataFrame
    all_series: int
    all_runs: int
    paper: Paper

    def own(self, style: Style) -> list[Row]:
        """Return the points of one series."""
        return [row for row in self.points if row["series"] == style.series]

    def empty(self, style: Style) -> list[Row]:
        """Return the points of one series that have a size but no run with a result."""
        return [row for row in self.own(style) if row["size"] and not row["n_ok"]]

    def gaps(self, style: Style) -> list[int]:
        """Return the sizes at which one series has no result."""
        there = {row["size"] for row in self.own(style) if row["n_ok"]}
        return [row["size"] for row in self.empty(style) if row["size"] not in there]

    def own_runs(self, style: Style) -> list[Row]:
        """Return the runs of one series."""
        return [row for row in self.runs if row["series"] == style.series]

    def only(self, style: Style) -> PlotData:
        """Return the plot of one series, for a panel of its own."""
        return self._replace(styles=[style], points=self.own(style), runs=self.own_runs(style))


def plot_data_of(study: ExpectedStudy, measured: Measured, paper: Paper = SCREEN) -> PlotData:
    """Return the first series of a study, and every k-th run if there are many."""
    series = list(dict.fromkeys(measured.points["series"]))
    shown = series[:MOST_SERIES]
    own = measured.runs[measured.runs["series"].isin(shown)]
    known = [name for name in OF_RUNS if name in own.columns]
    ok = own["state"] == OK
    keep = ok.cumsum() % (-(-int(ok.sum()) // MOST_RUNS) or 1) == 0
    points = plain_rows(measured.points[measured.points["series"].isin(shown)])
    unit = size_unit(plain_rows(measured.points[[*SIZE]]))
    for row in points:
        row["size"] = row[unit.key]
    runs = plain_rows(own.loc[keep | ~ok, known].assign(size=own[unit.key]))
    work = {point_of(row): row["work"] for row in points}
    for run in runs:
        run["work"] = work[point_of(run)]
    return PlotData(
        study=study,
        runs=runs,
        points=points,
        word=speedup_word(points),
        unit=unit,
        styles=styles(points, min(1.0, max(0.6, (paper.width or FULL) / FULL))),
        place=layout(points),
        laws=[law for law in measured.laws if law.series in shown],
        nodes=measured.nodes,
        every_run=measured.runs,
        all_series=len(series),
        all_runs=int(ok.sum()),
        paper=paper,
    )


def is_flagged(row: Row) -> bool:
    """Whether a point has a flag on more than the number of its runs."""
    return any(flag.code not in UNMARKED for flag in row["flags"])


def point_of(row: Row) -> tuple[Any, ...]:
    """Return the key of the point of a run or of a row of the point table."""
    return (row["series"], *(row[name] for name in SIZE))


def usable(row: Row, column: str) -> bool:
    """Whether a row has a size, and a value above zero."""
    return bool(row["size"]) and row[column] is not None and row[column] > 0


class Measured(NamedTuple):
    """A row for each run, point, run and node; and the laws of each series."""

    runs: pd.DataFrame
    points: pd.DataFrame
    laws: tuple[Fit, ...]
    nodes: pd.DataFrame
