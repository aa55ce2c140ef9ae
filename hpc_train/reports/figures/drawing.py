"""Measured tables -> the plain rows that figures show, limited to a readable number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.model.law import Fit
from hpc_train.model.measurement import ExpectedStudy
from hpc_train.reports.figures.looks import Layout, Look, layout, looks
from hpc_train.reports.measured import Measured
from hpc_train.reports.rows import plain_rows
from hpc_train.reports.tables import OK
from hpc_train.reports.words import speedup_word

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
MOST_SERIES = 10
# If there are more, every k-th is drawn: a page with 10,000 marks in each figure is slow.
MOST_RUNS = 2000
SIZE = ("nodes", "gpus_per_node", "tasks_per_node", "ranks")
OF_RUNS = (
    "run_id", "series", "state", "problem", *SIZE, "step_time_s", "samples_per_second",
    "tokens_per_second", "epoch_time_s", "time_to_train_s",
)  # fmt: skip


class Drawing(NamedTuple):
    """The rows of one study for the panels; `word` is the name of the speedup.

    `runs` and `points` are those of the series that are drawn (`looks`), `every_run` is the whole
    table; `all_series` and `all_runs` (those with a result) count also what is left out.
    """

    study: ExpectedStudy
    runs: Sequence[Row]
    points: Sequence[Row]
    word: str
    looks: Sequence[Look]
    place: Layout
    laws: Sequence[Fit]
    nodes: pd.DataFrame
    every_run: pd.DataFrame
    all_series: int
    all_runs: int

    def own(self, look: Look) -> list[Row]:
        """Return the points of one series."""
        return [row for row in self.points if row["series"] == look.series]

    def empty(self, look: Look) -> list[Row]:
        """Return the points of one series that have a size but no run with a result."""
        return [row for row in self.own(look) if row["ranks"] and not row["n_ok"]]

    def gaps(self, look: Look) -> list[int]:
        """Return the sizes at which one series has no result."""
        there = {row["ranks"] for row in self.own(look) if row["n_ok"]}
        return [row["ranks"] for row in self.empty(look) if row["ranks"] not in there]

    def own_runs(self, look: Look) -> list[Row]:
        """Return the runs of one series."""
        return [row for row in self.runs if row["series"] == look.series]


def drawing_of(study: ExpectedStudy, measured: Measured) -> Drawing:
    """Return the first series of a study, and every k-th run if there are many."""
    series = list(dict.fromkeys(measured.points["series"]))
    shown = series[:MOST_SERIES]
    own = measured.runs[measured.runs["series"].isin(shown)]
    known = [name for name in OF_RUNS if name in own.columns]
    ok = own["state"] == OK
    keep = ok.cumsum() % (-(-int(ok.sum()) // MOST_RUNS) or 1) == 0
    points = plain_rows(measured.points[measured.points["series"].isin(shown)])
    return Drawing(
        study=study,
        runs=plain_rows(own.loc[keep | ~ok, known]),
        points=points,
        word=speedup_word(points),
        looks=looks(points),
        place=layout(points),
        laws=[law for law in measured.laws if law.series in shown],
        nodes=measured.nodes,
        every_run=measured.runs,
        all_series=len(series),
        all_runs=int(ok.sum()),
    )


def point_of(row: Row) -> tuple[Any, ...]:
    """Return the key of the point of a run or of a row of the point table."""
    return (row["series"], *(row[name] for name in SIZE))
