"""Figures of the steps: their distribution, the parts of a step, and the step of each node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.by_size import (
    Mark,
    Panels,
    draw_hollow,
    draw_means,
    draw_runs,
    marks_of,
    shifted,
)
from hpc_train.reports.figures.canvas import (
    GREY,
    MARGIN,
    ROOM,
    Canvas,
    PlotData,
    draw_legend,
    draw_title,
    faceted,
    heading_lines,
    hollow_entry,
    log_axis,
    opened,
    sample,
    series_left_out,
    size_axis,
    split,
    titled,
    usable,
)
from hpc_train.reports.words import Row, one_line, plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

QUANTILES = ("step_p05_s", "step_p25_s", "step_p75_s", "step_p95_s")
# Width in points of the boxes of a single series; those of several are this much further apart than
# intervals, and fill this share of the distance.
BOX, WIDER, CLOSE = 8.0, 2.0, 0.8
# Name, column, colour, hatch; from the bottom up. The hatches distinguish them in greyscale.
PARTS = (
    ("compute and other", "", "#56B4E9", ""),
    ("communication", "communication_share", "#D55E00", "///"),
    ("data", "data_share", "#F0E442", "..."),
)
# Number of sizes that fit; if there are more, the largest are drawn.
MOST_BARS, BAR = 14, 0.7
MOST_NODES, MOST_RUNS = 32, 60
# Percent above the other nodes from which a node is marked. Less is noise between nodes.
SLOW = 3.0
MARK = "#D55E00"
# Start of the colour map: white means that a node was not in a run.
FAINT = 0.15


def draw_step_times(plot: PlotData) -> Canvas | None:
    """Draw the quantiles of the steps of each point, their median, and the median of each run.

    Box: from the 25th to the 75th percentile; line: from the 5th to the 95th.
    """
    if not any(map(_has_spread, plot.points)):
        return None
    canvas, panels = split(f"{plot.study.name}: distribution of step times", plot)
    _draw_steps(canvas, panels)
    draw_title(canvas, heading_lines(plot))
    box = sample(color=GREY, lw=5, alpha=0.45, solid_capstyle="butt")
    entries = [(box, "box: 25 to 75 % of steps")]
    entries += [(sample(color=GREY, lw=1.2), "line: 5 to 95 % of steps"), *hollow_entry(plot)]
    draw_legend(canvas, plot, entries, named=True)
    return canvas


def _draw_steps(canvas: Canvas, panels: Panels) -> None:
    heights: list[float] = []

    def value(row: Row) -> Mark | None:
        if not usable(row, "step_time_s"):
            return None
        shown = QUANTILES if "run_id" not in row and _has_spread(row) else ()
        spread = {name.split("_")[1]: 1e3 * row[name] for name in shown}
        return {"value": 1e3 * row["step_time_s"], **spread}

    for axes, plot in panels:
        axes.set(xlabel=plot.unit.plural, ylabel="step time [ms]")
        several = len(plot.styles) > 1
        width = WIDER * plot.apart * CLOSE if several else BOX
        for style in plot.styles:
            aside = WIDER * plot.apart * (len(plot.styles) - 1) / 2
            style = style._replace(beside=WIDER * style.beside, runs=style.runs + aside)
            medians, runs = (marks_of(of(style), value) for of in (plot.own, plot.own_runs))
            draw_runs(canvas, axes, runs, style)
            boxes = [mark for mark in medians if "p05" in mark]
            where, p05, p25, p75, p95 = (
                [mark[key] for mark in boxes] for key in ("size", "p05", "p25", "p75", "p95")
            )
            look: dict[str, Any] = {"color": style.colour, "transform": shifted(axes, style.beside)}
            if boxes:
                axes.vlines(where, p05, p95, lw=1.2, **look)
                axes.vlines(where, p25, p75, lw=width, alpha=0.45, **look)
            draw_means(canvas, axes, medians, style, style.beside)
            heights += [*p05, *p95, *(mark["value"] for mark in (*medians, *runs))]
    room = ROOM if draw_hollow(canvas, panels) else MARGIN
    for axes, plot in panels:
        size_axis(axes, plot.sizes)
        log_axis(axes, heights, room)


def _has_spread(row: Row) -> bool:
    return bool(row["size"]) and all((row.get(name) or 0) > 0 for name in QUANTILES)


def draw_time_split(plot: PlotData) -> Canvas | None:
    """Draw the known shares of the step time, stacked; compute is the remainder."""
    from matplotlib.patches import Patch

    known = {row["series"] for row in plot.points if _has_shares(row)}
    plot = plot._replace(styles=[style for style in plot.styles if style.series in known])
    if not plot.styles:
        return None
    canvas, panels = faceted(f"{plot.study.name}: shares of the step time", plot)
    for axes, own in panels:
        axes.set(xlabel=plot.unit.plural, ylabel="share of the step time [%]")
        rows = [row for row in own.points if _has_shares(row)]
        _draw_bars(canvas, axes, rows[-MOST_BARS:])
        axes.set(ylim=(0, 100))
        axes.grid(visible=False, axis="x")
    title = ["share of each part in the time of a step"]
    draw_title(canvas, titled(plot, title, series_left_out(plot)))
    entries = [
        (Patch(facecolor=colour, hatch=hatch, edgecolor="white"), name)
        for name, key, colour, hatch in reversed(PARTS)
        if not key or any(row.get(key) for row in plot.points)
    ]
    draw_legend(canvas, plot, entries, named=False)
    return canvas


def _draw_bars(canvas: Canvas, axes: Axes, rows: Sequence[Row]) -> None:
    """Draw a bar for each point."""
    where = [*range(len(rows))]
    shares = {
        key: [100 * min(max(rows[i].get(key) or 0.0, 0.0), 1.0) for i in where]
        for _, key, _, _ in PARTS[1:]
    }
    rest = [max(0.0, 100 - sum(own)) for own in zip(*shares.values(), strict=True)]
    bottom = [0.0] * len(where)
    for name, key, colour, hatch in PARTS:
        heights = shares.get(key, rest)
        if not any(heights):
            continue
        look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white", "lw": 0.8}
        axes.bar(where, heights, BAR, bottom, **look)
        for i, height in zip(where, heights, strict=True):
            canvas.rows.append(
                {"quantity": axes.get_ylabel(), "drawn": name, "series": rows[i]["series"],
                 "size": rows[i]["size"], "value": height}
            )  # fmt: skip
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    # Two points may have the same size.
    every = [row["size"] for row in rows]
    twice = {size for size in every if every.count(size) > 1}
    axes.set_xticks(
        range(len(rows)),
        [
            f"{n:,}" + f"\non {row['nodes']}" * (n in twice)
            for n, row in zip(every, rows, strict=True)
        ],
    )
    axes.set_xlim(-0.6, len(rows) - 0.4)


def _has_shares(row: Row) -> bool:
    return bool(row["size"]) and any(row.get(key) is not None for _, key, _, _ in PARTS if key)


def draw_nodes(plot: PlotData) -> Canvas | None:
    """Draw the excess of each node over the run's median node; name the slowest.

    Rows are nodes, columns are runs of two nodes or more, ordered by size. If there are many, those
    with the largest excess are drawn. The excess of a node is the median over its runs.
    """
    from matplotlib.patches import Rectangle

    table = plot.nodes[(plot.nodes["step_time_s"] > 0) & plot.nodes["node"].notna()]
    steps = table.groupby("run_id")["step_time_s"]
    table = table.assign(middle=steps.transform("median"), count=steps.transform("count"))
    table = table[table["count"] > 1]
    if table.empty:
        return None
    table = table.assign(excess=100 * (table["step_time_s"] / table["middle"] - 1))
    worst = table.groupby("run_id")["excess"].max().sort_values(ascending=False, kind="stable")
    kept = set(worst.index[:MOST_RUNS])
    table = table[table["run_id"].isin(kept)]
    found = plot.every_run.assign(size=plot.every_run[plot.unit.key])
    found = found.loc[found["run_id"].isin(kept), ["run_id", "series", "size", "nodes"]]
    runs = sorted(plain_rows(found), key=lambda run: (run["size"] or 0, run["nodes"] or 0))
    typical = table.groupby("node")["excess"].median()
    slow = set(typical.sort_values(ascending=False, kind="stable").index[:MOST_NODES])
    nodes = [node for node in sorted(typical.index, key=_natural) if node in slow]
    caption = f"{plot.study.name}: step time of each node against the median node of its run"
    canvas = opened(caption, plot.paper, 8.0, 2.3 + 0.2 * max(len(nodes), 4))
    axes = canvas.figure.subplots()
    _draw_cells(canvas, axes, table, (nodes, runs))
    _frame(axes, nodes, runs, plot.unit.plural)
    slowest = max(nodes, key=lambda node: float(typical[node]))
    said = f"no node is {SLOW:g} % slower than the others in most of its runs"
    if typical[slowest] >= SLOW:
        said = f"slowest: {one_line(slowest)}, {typical[slowest]:+.1f} % in the median of its runs"
        row = nodes.index(slowest)
        look: dict[str, Any] = {"fill": False, "ec": MARK, "lw": 2, "clip_on": False}
        axes.add_patch(Rectangle((0, row), len(runs), 1, **look))
        axes.get_yticklabels()[row].set(color=MARK, fontweight="bold")
    left_out = []
    if len(nodes) < len(typical):
        left_out.append(f"the {len(nodes)} slowest of {len(typical)} nodes")
    if len(kept) < len(worst):
        left_out.append(f"{len(kept)} of {len(worst)} runs, those with the largest differences")
    draw_title(canvas, titled(plot, [said], left_out))
    return canvas


def _draw_cells(
    canvas: Canvas, axes: Axes, table: pd.DataFrame, grid: tuple[Sequence[str], Sequence[Row]]
) -> None:
    """Draw a square for each node and run; `grid` are the rows and columns."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    nodes, runs = grid
    known = {(row["node"], row["run_id"]): row for row in plain_rows(table)}
    cells = [
        (x, y, run, known[node, run["run_id"]])
        for y, node in enumerate(nodes)
        for x, run in enumerate(runs)
        if (node, run["run_id"]) in known
    ]
    squares = PatchCollection(
        [Rectangle((x, y), 1, 1) for x, y, _, _ in cells], cmap="Blues", ec="white", lw=0.4
    )
    values = [cell["excess"] for *_, cell in cells]
    highest = max(*values, SLOW)
    squares.set_array(values)
    squares.set_clim(-FAINT * highest, highest)
    axes.add_collection(squares)
    for _, _, run, cell in cells:
        canvas.rows.append(
            {"quantity": "step time over the median node [%]", "drawn": "node",
             "node": cell["node"], "run_id": run["run_id"], "series": run["series"],
             "size": run["size"], "step_time_s": cell["step_time_s"], "value": cell["excess"]}
        )  # fmt: skip
    bar = canvas.figure.colorbar(squares, ax=axes, pad=0.02, fraction=0.05)
    bar.set_label("slower than the median node [%]")
    bar.outline.set_visible(False)
    bar.ax.set_ylim(0, highest)


def _frame(axes: Axes, nodes: Sequence[str], runs: Sequence[Row], sizes: str) -> None:
    axes.set(xlim=(0, len(runs)), ylim=(len(nodes), 0))
    axes.set_yticks([y + 0.5 for y in range(len(nodes))], list(map(one_line, nodes)))
    ticks, labels, start = [], [], 0
    for size, own in groupby(runs, key=lambda run: run["size"]):
        width = len(list(own))
        ticks.append(start + width / 2)
        labels.append("?" if size is None else f"{size:,}")
        start += width
        axes.axvline(start, color="black", lw=0.8)
    axes.set_xticks(ticks, labels)
    axes.set_xlabel(f"runs, by number of {sizes} (empty: node not in the run)")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
