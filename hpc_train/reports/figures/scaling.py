"""Figure: throughput and speedup against the number of ranks."""

from __future__ import annotations

from hpc_train.reports.figures.drawing import Drawing
from hpc_train.reports.figures.legend import draw_legend, draw_title, heading_lines, limits
from hpc_train.reports.figures.rates import draw_rates, draw_speedup
from hpc_train.reports.figures.sheet import NARROW, WIDE, Sheet, opened


def draw(drawing: Drawing) -> Sheet:
    """Draw throughput and, if there is more than a baseline, speedup.

    Left: throughput [samples/s] (or 1/time, where there is none), every run a point, the mean a
    line, the ideal from each baseline. Right: speedup with intervals against the ideal. Points
    without any ok run are hollow on the axis and never joined.
    """
    compared = any(row["speedup"] and not row["is_baseline"] for row in drawing.points)
    width = WIDE if compared else NARROW
    caption = f"{drawing.study.name}: throughput and {drawing.word} against the number of ranks"
    sheet = opened(caption, width)
    panels = sheet.canvas.subplots(1, 2 if compared else 1, squeeze=False)[0]
    left_out = draw_rates(sheet, panels[0], drawing)
    if compared:
        draw_speedup(sheet, panels[1], drawing)
    draw_title(sheet.canvas, heading_lines(drawing, left_out))
    draw_legend(sheet.canvas, drawing, limits(drawing))
    return sheet
