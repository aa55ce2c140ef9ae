"""Four equal series are one line; ten series have a panel each; no name covers another."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import msgspec
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.study import Gates
from hpc_train.reports.figures import FIGURES
from hpc_train.reports.figures.canvas import Canvas
from hpc_train.reports.figures.end_labels import spread
from hpc_train.reports.figures.markers import DOTTED
from hpc_train.reports.figures.plot_data import Measured, plot_data_of
from hpc_train.reports.figures.series_styles import SMALL_MULTIPLES
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
    [
        (1, "Speedup, interval against baseline"),
        (2, "Speedup: each series against its own baseline"),
    ],
)
def test_the_title_states_the_baseline_of_a_speedup(series: int, title: str) -> None:
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


@pytest.mark.parametrize("name", ["scaling", "efficiency", "karp-flatt"])
def test_four_equal_series_are_one_line(name: str) -> None:
    canvas = drawn(name, 4)
    canvas.figure.draw_without_rendering()
    for axes in canvas.figure.axes:
        own = lines(axes)
        assert len(own) == 4
        places = [axes.transData.transform(xy(line)) for line in own]
        for line, place in zip(own, places, strict=True):
            assert line.get_transform() == axes.transData
            assert place == pytest.approx(places[0], abs=0.01)
            assert {x for x, _ in xy(line)} <= set(GPUS)


@pytest.mark.parametrize("series", [1, 4, 10])
def test_a_panel_has_one_ideal(series: int) -> None:
    for axes in drawn("scaling", series).figure.axes:
        dotted = [line for line in axes.lines if line._unscaled_dash_pattern[1] == DOTTED[1]]  # type: ignore[attr-defined]
        assert len(dotted) == 1
        x, y = zip(*xy(dotted[0]), strict=True)
        assert list(x) == GPUS
        assert [b / a for a, b in pairwise(y)] == pytest.approx([2.0, 2.0, 2.0])


@pytest.mark.parametrize("name", ["scaling", "efficiency", "karp-flatt", "step-times"])
def test_from_seven_series_on_each_has_a_panel(name: str) -> None:
    for series in (SMALL_MULTIPLES, 10):
        axes = drawn(name, series).figure.axes
        assert [panel.get_title() for panel in axes] == [f"strategy-{i}" for i in range(series)]
        assert len({panel.get_ylim() for panel in axes}) == 1


def texts(canvas: Canvas) -> list[str]:
    return [label.get_text() for label in canvas.labels]


def test_up_to_six_series_are_named_at_their_lines() -> None:
    for series in (2, 6):
        canvas = drawn("scaling", series)
        with mpl.rc_context():
            canvas.figure.draw_without_rendering()
            canvas.figure.set_layout_engine("none")
            spread(canvas)
        assert texts(canvas) == [f"strategy-{i}" for i in range(series)] * 2
        entries = [text.get_text() for one in canvas.figure.legends for text in one.get_texts()]
        assert entries == ["ideal"]
        boxes = [Text.get_window_extent(label) for label in canvas.labels]
        for panel in (boxes[:series], boxes[series:]):
            ordered = sorted(panel, key=lambda box: box.y0)
            for below, above in pairwise(ordered):
                assert below.y1 <= above.y0
        assert all(box.x1 <= canvas.figure.bbox.x1 for box in boxes)
    assert texts(drawn("scaling", 1)) == texts(drawn("scaling", SMALL_MULTIPLES)) == []
