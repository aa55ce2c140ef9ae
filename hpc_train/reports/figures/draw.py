"""Figures against the size and of the steps: rates, efficiency, laws, step times, shares, nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.reports.figures.canvas import (
    BLACK,
    COLOURS,
    DOTTED,
    GREY,
    MARGIN,
    ROOM,
    WIDE,
    Canvas,
    LegendEntry,
    PlotData,
    Style,
    draw_legend,
    draw_title,
    faceted,
    heading_lines,
    hollow_entry,
    ideal_entry,
    is_flagged,
    log_axis,
    opened,
    plain_axis,
    sample,
    series_left_out,
    size_axis,
    split,
    titled,
    usable,
)
from hpc_train.reports.report import (
    Row,
    baseline_size,
    has_own_baselines,
    one_line,
    plain_rows,
    rate,
    regimes,
)
from hpc_train.scaling.scaling_fits import Fit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

# Points that the ring around a flagged mark is wider than the mark.
RING = 5.0
# Hollow markers above the axis, as a share of the height.
HEIGHT = 0.04


# What is drawn of a point or a run, as a row of the data: `size`, `value`, `low`, `high` …
Mark = dict[str, Any]
ValueOf = Callable[[Row], Mark | None]
Panels = Sequence[tuple["Axes", PlotData]]


def marks_of(rows: Sequence[Row], value: ValueOf) -> list[Mark]:
    """Return a mark for each point or run that has a size and a value."""
    found = []
    for row in rows:
        if not row["size"] or (shown := value(row)) is None:
            continue
        about = {"drawn": "mean", "series": row["series"], "size": row["size"]}
        if "run_id" in row:
            about |= {"drawn": "run", "run_id": row["run_id"], "state": row["state"]}
        else:
            about["runs"] = row["n_ok"]
            if is_flagged(row):
                about["flags"] = ", ".join(dict.fromkeys(flag.code.value for flag in row["flags"]))
        found.append(about | {key: known for key, known in shown.items() if known is not None})
    return found


def draw_series(canvas: Canvas, axes: Axes, plot: PlotData, value: ValueOf) -> list[float]:
    """Draw every run, the means of each series joined, and their intervals; return the heights.

    A line is interrupted at a size without a result. Neither lines nor means are shifted, so that
    equal series have equal lines.
    """
    heights: list[float] = []
    for style in plot.styles:
        runs, means = (marks_of(of(style), value) for of in (plot.own_runs, plot.own))
        draw_runs(canvas, axes, runs, style)
        means.sort(key=lambda mark: float(mark["size"]))
        gaps = plot.gaps(style)
        for _, part in groupby(means, key=lambda mark: sum(gap < mark["size"] for gap in gaps)):
            axes.plot(*_xy([*part]), color=style.colour, ls=style.dashes, lw=1.4)
        draw_means(canvas, axes, means, style)
        heights += [mark["value"] for mark in (*runs, *means)] + draw_bars(axes, means, style)
    return heights


def draw_runs(canvas: Canvas, axes: Axes, marks: Sequence[Mark], style: Style) -> None:
    """Draw every run as a small mark."""
    look: dict[str, Any] = {"ms": 0.6 * style.points, "alpha": 0.55, "mec": "none"}
    _draw(canvas, axes, marks, style, look | {"transform": shifted(axes, style.runs)})


def draw_means(
    canvas: Canvas, axes: Axes, marks: Sequence[Mark], style: Style, shift: float = 0.0
) -> None:
    """Draw the marks of means or medians, shifted by points of the page, with rings for flags."""
    place: dict[str, Any] = {"zorder": 3, "transform": shifted(axes, shift)}
    _draw(canvas, axes, marks, style, {"ms": style.points, "mec": "white", "mew": 0.6, **place})
    if flagged := [mark for mark in marks if "flags" in mark]:
        ring: dict[str, Any] = {"mfc": "none", "mec": BLACK, "mew": 1.2, "ms": style.points + RING}
        axes.plot(*_xy(flagged), "o", clip_on=False, **ring, **place)


def _draw(
    canvas: Canvas, axes: Axes, marks: Sequence[Mark], style: Style, look: Mapping[str, Any]
) -> None:
    if marks:
        axes.plot(*_xy(marks), style.marker, color=style.colour, clip_on=False, **look)
        canvas.rows += ({"quantity": axes.get_ylabel(), **mark} for mark in marks)


def draw_bars(axes: Axes, marks: Sequence[Mark], style: Style) -> list[float]:
    """Draw the intervals of the means; return their ends."""
    known = [mark for mark in marks if "low" in mark and "high" in mark]
    low, high = ([float(mark[end]) for mark in known] for end in ("low", "high"))
    if known:
        where = shifted(axes, style.beside)
        axes.vlines(_xy(known)[0], low, high, color=style.colour, lw=1.1, transform=where)
    return low + high


def draw_hollow(canvas: Canvas, panels: Panels) -> bool:
    """Draw a hollow marker for each point without a result; return whether there is any."""
    anything = False
    for axes, plot in panels:
        for style in plot.styles:
            rows = plot.empty(style)
            if not rows:
                continue
            anything = True
            axes.plot(
                [row["size"] for row in rows], [HEIGHT] * len(rows), style.marker, mfc="none",
                mec=style.colour, mew=1.4, ms=style.points + 1, ls="none",
                transform=shifted(axes, style.beside, axes.get_xaxis_transform()),
            )  # fmt: skip
            canvas.rows += (
                {"drawn": "no result", "series": row["series"], "size": row["size"],
                 "state": row["not_ok"]}
                for row in rows
            )  # fmt: skip
    return anything


def shifted(axes: Axes, points: float, base: Transform | None = None) -> Transform:
    """Return coordinates of data (or `base`), shifted sideways by points of the page."""
    from matplotlib.transforms import ScaledTranslation

    scale = axes.figure.dpi_scale_trans
    return (base or axes.transData) + ScaledTranslation(points / 72, 0, scale)


def _xy(marks: Sequence[Mark]) -> tuple[list[float], list[float]]:
    return [mark["size"] for mark in marks], [mark["value"] for mark in marks]


def draw_scaling(plot: PlotData) -> Canvas:
    """Draw throughput and, if there is more than a baseline, efficiency.

    Left: throughput [samples/s] (or 1/time, where there is none), every run a point, the mean a
    line, the ideal from the fastest baseline. Right: efficiency with intervals, from 0. Points
    without any ok run are hollow on the axis and never joined. Many series have one panel of
    throughput each; their efficiencies are in a figure of their own.
    """
    both = _has_efficiency(plot) and not plot.many
    shown = "throughput and efficiency" if both else "throughput"
    caption = f"{plot.study.name}: {shown} against the number of {plot.unit.plural}"
    if both:
        canvas = opened(caption, plot.paper, WIDE)
        left, right = canvas.panels(2)
        left_out = _draw_rates(canvas, [(left, plot)], plot)
        _draw_efficiency(canvas, [(right, plot)], plot)
        known = any(row["efficiency_low"] is not None for row in plot.points)
        title = "each run, mean, interval" if known else "against the baseline"
        if has_own_baselines(plot.points):
            title = "each series against its own baseline"
        right.set_title(f"Efficiency: {title}")
    else:
        canvas, panels = split(caption, plot)
        left_out = _draw_rates(canvas, panels, plot)
    codes = dict.fromkeys(
        f.code.value for row in plot.points if is_flagged(row) for f in row["flags"]
    )
    ring = sample(ls="none", marker="o", mfc="none", mec=BLACK, mew=1.2, ms=9)
    entries = hollow_entry(plot) + ([(ring, f"flagged: {', '.join(codes)}")] if codes else [])
    if any(row["ideal"] and not row["is_baseline"] for row in plot.points):
        entries += [*_gate_entry(plot), ideal_entry()]
    draw_title(canvas, heading_lines(plot, left_out))
    draw_legend(canvas, plot, entries, named=True)
    return canvas


def _draw_rates(canvas: Canvas, panels: Panels, plot: PlotData) -> int:
    """Draw every run, the mean of each point with its interval, and the ideal of the panel.

    Returns the number of points that could not be drawn: their size is unknown, or their runs lack
    the basis of most series.
    """
    bases = [str(row["basis"]) for row in plot.points if row["n_ok"]] or ["throughput"]
    # If they differ, the most common, or the first at a tie.
    basis = max(dict.fromkeys(bases), key=bases.count)
    grows = any(row["work"] != 1 for row in plot.points if row["basis"] == basis)
    label = f"{BASES[basis].at_axis}{' x ranks' if grows else ''}"
    heights: list[float] = []

    def value(row: Row) -> Mark | None:
        y, ends = rate(row, basis), ("low", "high") if basis == "throughput" else ()
        limits = {end: row.get(f"samples_per_second_{end}") or None for end in ends}
        return {"value": y, **limits} if y else None

    for axes, own in panels:
        axes.set(xlabel=plot.unit.plural, ylabel=label)
        ideal = _ideal(own, basis)
        axes.plot([*ideal], [*ideal.values()], color=GREY, lw=1.2, ls=DOTTED, zorder=1)
        canvas.rows += (
            {"quantity": label, "drawn": "ideal", "size": x, "value": y} for x, y in ideal.items()
        )
        heights += [*ideal.values(), *draw_series(canvas, axes, own, value)]
    hollow = draw_hollow(canvas, panels)
    if len(panels) == 1:
        known = basis == "throughput" and any(row["samples_per_second_low"] for row in plot.points)
        marks = "each run, mean, interval" if known else "each run and their mean"
        panels[0][0].set_title(f"{label.partition(' [')[0].capitalize()}: {marks}")
    for axes, _ in panels:
        size_axis(axes, plot.sizes)
        log_axis(axes, heights, ROOM if hollow else MARGIN)
        if not heights:
            where: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "color": GREY}
            axes.text(0.5, 0.5, "nothing to draw", **where)
    left_out = sum(bool(row["n_ok"] or not row["size"]) for row in plot.points)
    return left_out - [row.get("drawn") for row in canvas.rows].count("mean")


def _ideal(plot: PlotData, basis: str) -> dict[int, float]:
    """Return the ideal rate at each size, from the baseline with the highest rate at its size."""
    rates = [
        ((rate(row, basis) or 0) / row["size"], row["size"])
        for row in plot.points
        if row["is_baseline"] and usable(row, BASIS_COLUMNS[basis])
    ]
    if not rates or not any(row["ideal"] for row in plot.points):
        return {}
    each, base = max(rates)
    return {x: each * x for x in plot.sizes if x >= base}


def draw_efficiencies(plot: PlotData) -> Canvas | None:
    """Draw the efficiency of each of many series; that of a few is in the main figure."""
    if not plot.many or not _has_efficiency(plot):
        return None
    caption = f"{plot.study.name}: parallel efficiency against the number of {plot.unit.plural}"
    canvas, panels = split(caption, plot)
    _draw_efficiency(canvas, panels, plot)
    draw_title(canvas, heading_lines(plot))
    entries = [*hollow_entry(plot), *_gate_entry(plot), ideal_entry()]
    draw_legend(canvas, plot, entries, named=True)
    return canvas


def _has_efficiency(plot: PlotData) -> bool:
    """Whether a point other than a baseline has an efficiency."""
    return any(r["efficiency"] and r["size"] and not r["is_baseline"] for r in plot.points)


def _draw_efficiency(canvas: Canvas, panels: Panels, plot: PlotData) -> None:
    """Draw efficiency E = S/q [%] from 0, every run a point, computed from its own rate.

    The runs of the baseline scatter around 100 %; every interval includes this scatter.
    """
    heights, gate = [100.0], plot.study.gates.efficiency
    for axes, own in panels:
        axes.set(xlabel=plot.unit.plural, ylabel="efficiency [%]")
        heights += draw_series(canvas, axes, own, _efficiency)
        axes.axhline(100, color=GREY, lw=1.2, ls=DOTTED, zorder=1)
        if gate is not None:
            axes.axhline(100 * gate, color=BLACK, lw=1.4, zorder=1)
    draw_hollow(canvas, panels)
    if gate is not None:
        canvas.rows.append({"quantity": "efficiency [%]", "drawn": "gate", "value": 100 * gate})
    for axes, _ in panels:
        size_axis(axes, plot.sizes)
        plain_axis(axes, 0.0, max(heights))


def _efficiency(row: Row) -> Mark | None:
    """Return the efficiency of a point, or of a run: in proportion to its rate."""
    point = row.get("point", row)
    if not point["efficiency"]:
        return None
    value, column = 100 * point["efficiency"], BASIS_COLUMNS[point["basis"]]
    if "run_id" not in row:
        ends = {end: row[f"efficiency_{end}"] for end in ("low", "high")}
        return {"value": value, **{k: end and 100 * end for k, end in ends.items()}}
    if not (usable(point, column) and usable(row, column)):
        return None
    ratio = row[column] / point[column]
    return {"value": value * (ratio if BASES[point["basis"]].is_rate else 1 / ratio)}


def _gate_entry(plot: PlotData) -> list[LegendEntry]:
    gate = plot.study.gates.efficiency
    if gate is None:
        return []
    return [(sample(color=BLACK, lw=1.4), f"gate: {gate * 100:g} % of ideal")]


# Name, colour and dashes.
LAWS: dict[str, tuple[str, str, Any]] = {
    "amdahl": ("Amdahl", COLOURS[0], "-"),
    "gustafson": ("Gustafson", COLOURS[2], "-."),
    "usl": ("USL", COLOURS[1], "--"),
}
BEYOND = "0.93"
MEASURED = Style("", BLACK, "o", "none", 0.0, 0.0, 5.0)


def draw_fits(plot: PlotData) -> Canvas | None:
    """Draw the speedups of each series and its laws with bands; shade the range beyond the data.

    A peak is drawn only if the fit bounds it.
    """
    from matplotlib.patches import Patch

    fitted = [law for law in plot.laws if law.curve and not law.refused]
    series = {law.series for law in fitted}
    plot = plot._replace(styles=[style for style in plot.styles if style.series in series])
    if not plot.styles:
        return None
    # To tell it from that of strong scaling.
    word = "scaled speedup" if regimes(plot.points) == ["weak"] else "speedup"
    canvas, panels = faceted(f"{plot.study.name}: laws of scaling fitted to {word}", plot)
    heights: list[float] = []
    for axes, own in panels:
        axes.set(xlabel=plot.unit.plural, ylabel=word)
        name = own.styles[0].series
        laws = [law for law in fitted if law.series == name]
        base = baseline_size(own.points, name, plot.unit) or 1.0
        for law in laws:
            heights += _draw_law(canvas, axes, law, base)
        marks = marks_of(own.points, _speedup)
        draw_means(canvas, axes, marks, MEASURED)
        ends = draw_bars(axes, marks, MEASURED)
        heights += [*_xy(marks)[1], *(end for end in ends if end > 0)]
        _finish(axes, _xy(marks)[0], laws, base)
    for axes, _ in panels:
        log_axis(axes, heights)
    notes = dict.fromkeys(note for law in fitted for note in law.notes)
    draw_title(canvas, "\n".join([heading_lines(plot), *notes]))
    black = sample(color=BLACK, marker="o", ls="none", mec="white", mew=0.6, ms=5)
    entries: list[LegendEntry] = [(black, "measured")]
    for law_name, (title, colour, dashes) in LAWS.items():
        if any(law.law == law_name for law in fitted):
            entries.append((sample(color=colour, ls=dashes, lw=1.5), title))
    entries += [(Patch(color=BEYOND), "not measured"), ideal_entry()]
    draw_legend(canvas, plot, entries, named=False)
    return canvas


def _speedup(row: Row) -> Mark | None:
    shown = {"value": row["speedup"], "low": row["speedup_low"], "high": row["speedup_high"]}
    return shown if row["speedup"] and row["ideal"] else None


def _draw_law(canvas: Canvas, axes: Axes, law: Fit, base: float) -> list[float]:
    """Draw a law and its band over the sizes, which are multiples of `base`; return its heights."""
    name, colour, dashes = LAWS[law.law]
    sizes = [point.q * base for point in law.curve]
    axes.plot(sizes, [point.speedup for point in law.curve], color=colour, ls=dashes, lw=1.5)
    band = [
        (x, p.low, p.high)
        for x, p in zip(sizes, law.curve, strict=True)
        if p.low is not None and p.high is not None and p.low > 0
    ]
    if band:
        xs, lows, highs = zip(*band, strict=True)
        axes.fill_between(xs, lows, highs, color=colour, alpha=0.15, lw=0)
    about = {"quantity": axes.get_ylabel(), "drawn": law.law, "series": law.series}
    canvas.rows += (
        about
        | {"size": x, "value": p.speedup, "low": p.low, "high": p.high, "measured": p.measured}
        for x, p in zip(sizes, law.curve, strict=True)
    )
    if law.peak is not None and sizes[0] <= (peak := law.peak.value * base) <= sizes[-1]:
        axes.axvline(peak, color=colour, ls=dashes, lw=0.9, ymax=0.9)
        ends = [end * base for end in (law.peak.low, law.peak.high) if end is not None]
        shown = f"{peak:.3g} [{ends[0]:.3g}, {ends[1]:.3g}]" if len(ends) == 2 else f"{peak:.3g}"
        # On the side of the line with more space.
        left = peak**2 < sizes[0] * sizes[-1]
        pad = " " * left
        axes.text(
            peak, 0.03, f"{pad}{name} peak \n{pad}{shown} ", color=colour, fontsize="small",
            va="bottom", ha="left" if left else "right", transform=axes.get_xaxis_transform(),
        )  # fmt: skip
    return [point.speedup for point in law.curve if point.speedup > 0]


def _finish(axes: Axes, measured: Sequence[float], laws: Sequence[Fit], base: float) -> None:
    """Draw the ideal, shade the sizes beyond the largest point, and set the ticks."""
    every = [*(point.q * base for law in laws for point in law.curve), *measured]
    first, end, last = min(every), max(every), max(law.largest_q for law in laws) * base
    axes.plot((first, end), (first / base, end / base), color=GREY, lw=1.2, ls=DOTTED, zorder=1)
    size_axis(axes, sorted({*measured, end}))
    low, high = first / 1.15, end * 1.15
    axes.set_xlim(low, high)
    if end > last:
        axes.axvspan(last, high, color=BEYOND, zorder=0, lw=0)


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
    # node2 before node10.
    parts = {node: re.split(r"(\d+)", node) for node in slow}
    nodes = sorted(slow, key=lambda one: [(len(p) * p.isdecimal(), p) for p in parts[one]])
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
