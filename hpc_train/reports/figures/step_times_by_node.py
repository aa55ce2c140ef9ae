"""Figure: the step time of each node in each run, to show slow nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.reports.figures.canvas import Canvas, explain, opened
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.titles_and_legend import draw_title, titled
from hpc_train.reports.point_and_series_names import SizeUnit
from hpc_train.reports.value_format import Row, one_line, plain_rows, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NODES, MOST_RUNS = 32, 60
# Percent above the other nodes from which a node is marked. Less is noise between nodes.
SLOW = 3.0
MARK = "#D55E00"
# Start of the colour map: white means that a node was not in a run.
FAINT = 0.15
LONGEST = 24


class NodeHeatmap(NamedTuple):
    """Percent above the run's median node, by node and run; and the medians [s]."""

    nodes: Sequence[str]
    runs: Sequence[Row]
    excess: Mapping[tuple[str, str], float]
    times: Mapping[tuple[str, str], float]
    typical: Mapping[str, float]


def draw(plot: PlotData) -> Canvas | None:
    """Draw the excess of each node over the run's median node; name the slowest.

    Rows are nodes, columns are runs of two nodes or more, ordered by size. If there are many, those
    with the largest excess are drawn. The excess of a node is the median over its runs.
    """
    strip = _strip(plot)
    if strip is None:
        return None
    slow = sorted(strip.nodes, key=lambda node: -strip.typical[node])[:MOST_NODES]
    nodes = [node for node in strip.nodes if node in set(slow)]
    caption = f"{plot.study.name}: step time of each node against the median node of its run"
    canvas = opened(caption, plot.paper, 8.0, 2.3 + 0.2 * max(len(nodes), 4))
    axes = canvas.figure.subplots()
    _draw_cells(canvas, axes, strip, nodes)
    _frame(axes, strip.runs, nodes, plot.unit)
    slowest = max(nodes, key=lambda node: strip.typical[node])
    words = f"no node is {SLOW:g} % slower than the others in most of its runs"
    if strip.typical[slowest] >= SLOW:
        words = (
            f"slowest: {_name(slowest)}, {strip.typical[slowest]:+.1f} % in the median of its runs"
        )
        _mark(axes, nodes.index(slowest), len(strip.runs))
    draw_title(canvas, titled(plot, [words], _left_out(strip, nodes, plot)))
    return canvas


def _strip(plot: PlotData) -> NodeHeatmap | None:
    table = plot.nodes
    table = table[(table["step_time_s"] > 0) & table["node"].notna()]
    if table.empty:
        return None
    groups = table.groupby("run_id")["step_time_s"].agg(["count", "median", "max"])
    groups = groups[groups["count"] > 1]
    if groups.empty:
        return None
    worst = (groups["max"] / groups["median"]).sort_values(ascending=False, kind="stable")
    kept = set(worst.index[:MOST_RUNS])
    every = plot.every_run
    wanted = every[every["run_id"].isin(kept)].assign(size=every[plot.unit.key])
    runs = plain_rows(wanted[["run_id", "series", "size", "nodes"]])
    runs.sort(key=lambda run: (run["size"] or 0, run["nodes"] or 0))
    middle = groups["median"].to_dict()
    excess, times = {}, {}
    for row in plain_rows(table[table["run_id"].isin(kept)]):
        key = (str(row["node"]), str(row["run_id"]))
        times[key] = row["step_time_s"]
        excess[key] = 100 * (row["step_time_s"] / middle[row["run_id"]] - 1)
    nodes = sorted({node for node, _ in excess}, key=_natural)
    own: dict[str, list[float]] = {node: [] for node in nodes}
    for (node, _), value in excess.items():
        own[node].append(value)
    return NodeHeatmap(nodes, runs, excess, times, {node: median(own[node]) for node in nodes})


def _draw_cells(canvas: Canvas, axes: Axes, strip: NodeHeatmap, nodes: Sequence[str]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    cells = [
        (x, y, node, run)
        for y, node in enumerate(nodes)
        for x, run in enumerate(strip.runs)
        if (node, run["run_id"]) in strip.excess
    ]
    patches = PatchCollection(
        [Rectangle((x, y), 1, 1) for x, y, _, _ in cells], cmap="Blues", ec="white", lw=0.4
    )
    values = [strip.excess[node, run["run_id"]] for _, _, node, run in cells]
    patches.set_array(values)
    highest = max(*values, SLOW)
    patches.set_clim(-FAINT * highest, highest)
    axes.add_collection(patches)
    titles = []
    for (_, _, node, run), value in zip(cells, values, strict=True):
        time = strip.times[node, run["run_id"]]
        words = f"{node}, run {run['run_id']}: {significant(1e3 * time)} ms, {value:+.1f} %"
        titles.append(one_line(words))
        canvas.rows.append(
            {"quantity": "step time over the median node [%]", "drawn": "node", "node": node,
             "run_id": run["run_id"], "series": run["series"], "size": run["size"],
             "step_time_s": time, "value": value}
        )  # fmt: skip
    explain(canvas, patches, titles)
    bar = canvas.figure.colorbar(patches, ax=axes, pad=0.02, fraction=0.05)
    bar.set_label("slower than the median node [%]")
    bar.outline.set_visible(False)
    bar.ax.set_ylim(0, highest)


def _frame(axes: Axes, runs: Sequence[Row], nodes: Sequence[str], unit: SizeUnit) -> None:
    axes.set(xlim=(0, len(runs)), ylim=(len(nodes), 0))
    axes.set_yticks([y + 0.5 for y in range(len(nodes))], [_name(node) for node in nodes])
    ticks, labels, start = [], [], 0
    for size, own in groupby(runs, key=lambda run: run["size"]):
        width = len(list(own))
        ticks.append(start + width / 2)
        labels.append("?" if size is None else f"{size:,}")
        start += width
        axes.axvline(start, color="black", lw=0.8)
    axes.set_xticks(ticks, labels)
    axes.set_xlabel(f"runs, by number of {unit.plural} (empty: node not in the run)")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _mark(axes: Axes, row: int, width: int) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((0, row), width, 1, fill=False, ec=MARK, lw=2, clip_on=False))
    label = axes.get_yticklabels()[row]
    label.set(color=MARK, fontweight="bold")


def _left_out(strip: NodeHeatmap, nodes: Sequence[str], plot: PlotData) -> list[str]:
    parts = []
    if len(nodes) < len(strip.nodes):
        parts.append(f"the {len(nodes)} slowest of {len(strip.nodes)} nodes")
    if len(strip.runs) == MOST_RUNS:
        total = plot.nodes["run_id"].nunique()
        parts.append(f"{MOST_RUNS} of {total} runs, those with the largest differences")
    return parts


def _name(node: str) -> str:
    name = one_line(node)
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 2 + 1 :]}"


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
