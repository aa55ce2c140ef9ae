"""The numbers below the axis of sizes do not touch, at the widths of a screen and of paper."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import matplotlib as mpl
import pytest

from hpc_train.model.report_options import Paper
from hpc_train.reports.figures import efficiency, scaling
from hpc_train.reports.figures.images import STYLE, finished
from hpc_train.reports.figures.plot_data import plot_data_of
from tests.reports.measured import measured


@pytest.mark.parametrize("width", [None, 3.3, 4.5, 6.9, 7.5], ids=str)
@pytest.mark.parametrize("draw", [scaling.draw, efficiency.draw], ids=["scaling", "efficiency"])
def test_numbers_of_sizes_do_not_touch(draw: Any, width: float | None) -> None:
    study, tables = measured(tuple(2**i for i in range(12)), ("srun",), 3)
    style: Any = STYLE
    with mpl.rc_context(style):
        canvas = draw(plot_data_of(study, tables, Paper(width=width)))
        finished("figure", canvas, (), "nodes")
        for axes in canvas.figure.axes:
            labels = [one for one in axes.get_xticklabels() if one.get_visible()]
            boxes = [one.get_window_extent() for one in labels]
            assert len(boxes) >= 4
            assert all(b.x0 - a.x1 >= 0.25 * a.height for a, b in pairwise(boxes))
            sizes = [float(one.get_text().replace(",", "")) for one in labels]
            assert sizes[-1] == 4 * 2048
