"""Figure: shares of the step time at each size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpc_train.reports.figures.canvas import Canvas, explain
from hpc_train.reports.figures.markers import GREY
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.series_styles import Style
from hpc_train.reports.figures.small_multiples import faceted, shown_in
from hpc_train.reports.figures.titles_and_legend import (
    LegendEntry,
    draw_legend,
    draw_title,
    hollow_entry,
    series_left_out,
    titled,
)
from hpc_train.reports.point_and_series_names import place
from hpc_train.reports.value_format import Row, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Name, colour, hatch; from the bottom up. The hatches distinguish them in greyscale.
PARTS = (
    ("compute and other", "#56B4E9", ""),
    ("communication", "#D55E00", "///"),
    ("data", "#F0E442", "..."),
)
SHARES = {"communication": "communication_share", "data": "data_share"}
BAR = 0.7
# Number of sizes that fit; if there are more, the largest are drawn.
MOST_BARS = 14


def draw(plot: PlotData) -> Canvas | None:
    """Draw the known shares of the step time, stacked; compute is the remainder."""
    known = {row["series"] for row in plot.points if _known(row)}
    styles = [style for style in plot.styles if style.series in known]
    if not styles:
        return None
    canvas, panels = faceted(f"{plot.study.name}: shares of the step time", styles, plot)
    for axes, style in zip(panels, styles, strict=False):
        axes.set(xlabel=plot.unit.plural, ylabel="share of the step time [%]")
        shown = [row for row in plot.own(style) if row["size"]]
        shown = [row for row in shown if _known(row) or not row["n_ok"]][-MOST_BARS:]
        _draw_bars(canvas, axes, shown)
        _draw_empty(canvas, axes, shown, style)
        axes.set_xticks(range(len(shown)), _labels(shown))
        axes.set(xlim=(-0.6, len(shown) - 0.4), ylim=(0, 100))
        axes.grid(visible=False, axis="x")
    draw_title(
        canvas,
        titled(
            plot,
            ["share of each part in the time of a step"],
            series_left_out(shown_in(plot, styles)),
        ),
    )
    draw_legend(canvas, plot, [*_entries(plot), *hollow_entry(plot)], series=False)
    return canvas


def _draw_bars(canvas: Canvas, axes: Axes, rows: Sequence[Row]) -> None:
    where = [i for i, row in enumerate(rows) if _known(row)]
    bottom = [0.0] * len(where)
    for name, colour, hatch in PARTS:
        heights = [100 * _parts(rows[i])[name] for i in where]
        if not any(heights):
            continue
        bars = axes.bar(
            where, heights, BAR, bottom, color=colour, hatch=hatch, edgecolor="white", lw=0.8
        )
        for i, height, bar in zip(where, heights, bars, strict=True):
            explain(canvas, bar, [one_line(f"{place(rows[i])}: {name} {height:.1f} %")])
            canvas.rows.append(
                {"quantity": axes.get_ylabel(), "drawn": name, "series": rows[i]["series"],
                 "size": rows[i]["size"], "value": height}
            )  # fmt: skip
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]


def _draw_empty(canvas: Canvas, axes: Axes, rows: Sequence[Row], style: Style) -> None:
    empty = [i for i, row in enumerate(rows) if not row["n_ok"]]
    if empty:
        (artist,) = axes.plot(
            empty,
            [4.0] * len(empty),
            "o",
            mfc="none",
            mec=GREY,
            mew=1.4,
            ms=style.marker_points + 1,
        )
        explain(canvas, artist, [one_line(f"{place(rows[i])}: {rows[i]['not_ok']}") for i in empty])
        canvas.rows.extend(
            {"drawn": "no result", "series": rows[i]["series"], "size": rows[i]["size"],
             "state": rows[i]["not_ok"]}
            for i in empty
        )  # fmt: skip


def _parts(row: Row) -> dict[str, float]:
    shares = {name: min(max(row.get(key) or 0.0, 0.0), 1.0) for name, key in SHARES.items()}
    return {PARTS[0][0]: max(0.0, 1 - sum(shares.values())), **shares}


def _known(row: Row) -> bool:
    return bool(row["size"]) and any(row.get(key) is not None for key in SHARES.values())


def _labels(rows: Sequence[Row]) -> list[str]:
    """Label with sizes, and also with nodes if two points have the same size."""
    every = [row["size"] for row in rows]
    twice = {n for n in every if every.count(n) > 1}
    return [
        f"{row['size']:,}\non {row['nodes']}" if row["size"] in twice else f"{row['size']:,}"
        for row in rows
    ]


def _entries(plot: PlotData) -> list[LegendEntry]:
    from matplotlib.patches import Patch

    known = {name for name, key in SHARES.items() if any(r.get(key) for r in plot.points)}
    return [
        (Patch(facecolor=colour, hatch=hatch, edgecolor="white"), name)
        for name, colour, hatch in reversed(PARTS)
        if name in known or name == PARTS[0][0]
    ]
