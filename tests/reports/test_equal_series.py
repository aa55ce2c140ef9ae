"""Four equal series are one line."""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hpc_train.jobs.study import Gates
from hpc_train.reports.figures import FIGURES
from hpc_train.reports.figures.canvas import Canvas, Measured, plot_data_of
from hpc_train.runs.expected_runs import ExpectedStudy
from tests.reports.measured import measured, node_times

SIZES = (1, 2, 4, 8)
GPUS = [4, 8, 16, 32]


def equal(series: int) -> tuple[ExpectedStudy, Measured]:
    """Return copies of one series."""
    study, tables = measured(SIZES, ("a",), 3, ())

    def copies(frame: pd.DataFrame) -> pd.DataFrame:
        names = [f"case=strategy-{i}" for i in range(series)]
        table: pd.DataFrame = pd.concat(
            [frame.assign(series=name) for name in names], ignore_index=True
        )
        return table

    runs = copies(tables.runs)
    runs["run_id"] = [f"run-{i}" for i in range(len(runs))]
    study = msgspec.structs.replace(study, gates=Gates())
    return study, Measured(runs, copies(tables.points), (), node_times(runs[:9]))


def drawn(name: str, series: int) -> Canvas:
    canvas = FIGURES[name](plot_data_of(*equal(series)))
    assert canvas is not None
    return canvas


@pytest.mark.parametrize(
    ("series", "title"),
    [(1, "Efficiency: each run, mean, interval"),
     (2, "Efficiency: each series against its own baseline")],
)  # fmt: skip
def test_the_title_states_the_baseline_of_an_efficiency(series: int, title: str) -> None:
    assert title in [axes.get_title() for axes in drawn("scaling", series).figure.axes]


def xy(line: Line2D) -> list[list[float]]:
    places: list[list[float]] = np.asarray(line.get_xydata(), dtype=float).tolist()
    return places


def lines(axes: Axes) -> list[Line2D]:
    """Return the joined lines of series: the others are dotted or black or grey."""
    found = []
    for line in axes.lines:
        coloured = str(line.get_color()).startswith("#") and line.get_linestyle() != "None"
        if coloured and xy(line)[0][0] in GPUS:
            found.append(line)
    return found


def test_four_equal_series_are_one_line() -> None:
    canvas = drawn("scaling", 4)
    canvas.figure.draw_without_rendering()
    for axes in canvas.figure.axes:
        own = lines(axes)
        assert len(own) == 4
        places = [axes.transData.transform(xy(line)) for line in own]
        for line, place in zip(own, places, strict=True):
            assert line.get_transform() == axes.transData
            assert place == pytest.approx(places[0], abs=0.01)
            assert {x for x, _ in xy(line)} <= set(GPUS)
