"""Small multiples: the grey lines of the other series hide neither the ideal nor one another."""

from __future__ import annotations

import pytest
from matplotlib.colors import same_color

from hpc_train.model.report_options import SCREEN, Paper
from hpc_train.reports.figures import scaling
from hpc_train.reports.figures.markers import GREY
from hpc_train.reports.figures.plot_data import plot_data_of
from hpc_train.reports.figures.small_multiples import GHOST
from tests.reports.measured import measured

SERIES = tuple(f"s{number}" for number in range(8))


@pytest.mark.parametrize(("paper", "width"), [(SCREEN, 0.7), (Paper(width=3.3), 0.35)])
def test_the_lines_of_other_series_are_below_the_ideal(paper: Paper, width: float) -> None:
    study, tables = measured((1, 2, 4), SERIES, 3, ())
    figure = scaling.draw(plot_data_of(study, tables, paper)).figure
    panels = [axes for axes in figure.axes if axes.lines]
    assert len(panels) == len(SERIES)
    for axes in panels:
        ghosts = [line for line in axes.lines if same_color(line.get_color(), GHOST)]
        ideal = [line for line in axes.lines if same_color(line.get_color(), GREY)]
        assert {line.get_linewidth() for line in ghosts} == {width}
        assert (len(ghosts), len(ideal)) == (len(SERIES) - 1, 1)
        assert max(line.get_zorder() for line in ghosts) < ideal[0].get_zorder()
