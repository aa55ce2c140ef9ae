"""Figures against the size: rates, efficiency, the serial fraction, laws, and cost over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.jobs.study import ALONE
from hpc_train.reports.figures.canvas import (
    BLACK,
    DOTTED,
    GREY,
    MARGIN,
    ROOM,
    WIDE,
    Canvas,
    LegendEntry,
    draw_legend,
    draw_title,
    faceted,
    heading_lines,
    hollow_entry,
    ideal_entry,
    log_axis,
    opened,
    plain_axis,
    sample,
    size_axis,
    split,
)
from hpc_train.reports.figures.plot_data import (
    COLOURS,
    PlotData,
    Style,
    is_flagged,
    point_of,
    usable,
)
from hpc_train.reports.report import OK
from hpc_train.reports.words import (
    Row,
    baseline_size,
    counted,
    has_own_baselines,
    one_line,
    place,
    rate,
    regimes,
    significant,
)
from hpc_train.scaling.scaling_fits import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

# Points that the ring around a flagged mark is wider than the mark.
RING = 5.0
# Hollow markers above the axis, as a share of the height.
HEIGHT = 0.04
# Of means, so that the pointer finds them and not their intervals.
ABOVE = 3
COST = "gpu_hours_per_million"
# Room that the size of a point needs, in pixels of the figure before its layout.
LABEL = (75.0, 18.0)


class Value(NamedTuple):
    """What a mark shows: its height, that as text, its interval, and its place beside the size.

    `more` are further columns of its row in the data.
    """

    y: float
    text: str
    low: float | None = None
    high: float | None = None
    x: float | None = None
    more: Mapping[str, Any] = {}


class Dot(NamedTuple):
    """A mark: position, tooltip, and its row in the data."""

    x: float
    y: float
    title: str
    row: dict[str, Any]


ValueOf = Callable[[Row], Value | None]
Panels = Sequence[tuple["Axes", PlotData]]


def dots(rows: Sequence[Row], value: ValueOf) -> list[Dot]:
    """Return a mark for each point or run that has a size and a value."""
    found = []
    for row in rows:
        if not row["size"] or (shown := value(row)) is None:
            continue
        about = {"drawn": "mean", "series": row["series"], "size": row["size"]}
        if "run_id" in row:
            about |= {"drawn": "run", "run_id": row["run_id"], "state": row["state"]}
            title = f"{row['run_id']}: {shown.text}, {row['state']}"
        else:
            series = "" if row["series"] == ALONE else f"{row['series']}, "
            title = f"{series}{place(row)}: {shown.text}, mean of {counted(row['n_ok'], 'run')}"
            about["runs"] = row["n_ok"]
            if is_flagged(row):
                about["flags"] = ", ".join(dict.fromkeys(flag.code.value for flag in row["flags"]))
        about["value"] = shown.y
        if shown.low is not None and shown.high is not None:
            about |= {"low": shown.low, "high": shown.high}
            title += f", interval {shown.low:.4g} to {shown.high:.4g}"
        x = row["size"] if shown.x is None else shown.x
        found.append(Dot(x, shown.y, one_line(title), {**about, **shown.more}))
    return found


def draw_series(canvas: Canvas, axes: Axes, plot: PlotData, value: ValueOf) -> list[float]:
    """Draw every run, the means of each series joined, and their intervals; return the heights.

    A line is interrupted at a size without a result. Neither lines nor means are shifted, so that
    equal series have equal lines.
    """
    heights: list[float] = []
    for style in plot.styles:
        runs, means = dots(plot.own_runs(style), value), dots(plot.own(style), value)
        draw_runs(canvas, axes, runs, style)
        means.sort(key=lambda dot: dot.row["size"])
        parts: list[list[Dot]] = []
        for dot in means:
            last = parts[-1][-1].row["size"] if parts else None
            if last is None or any(last < gap < dot.row["size"] for gap in plot.gaps(style)):
                parts.append([])
            parts[-1].append(dot)
        for part in parts:
            x, y = _xy(part)
            axes.plot(x, y, color=style.colour, ls=style.dashes, lw=1.4)
            canvas.lines.append((axes, style, x, y))
        draw_means(canvas, axes, means, style)
        heights += [dot.y for dot in (*runs, *means)] + draw_bars(axes, means, style)
    return heights


def draw_runs(canvas: Canvas, axes: Axes, marks: Sequence[Dot], style: Style) -> None:
    """Draw every run as a small mark."""
    if marks:
        (artist,) = axes.plot(
            *_xy(marks), style.marker, color=style.colour, ms=0.6 * style.points, alpha=0.55,
            mec="none", transform=shifted(axes, style.runs), clip_on=False,
        )  # fmt: skip
        _keep(canvas, artist, marks)


def draw_means(
    canvas: Canvas, axes: Axes, marks: Sequence[Dot], style: Style, shift: float = 0.0
) -> None:
    """Draw the marks of means or medians, shifted by points of the page, with rings for flags."""
    if not marks:
        return
    look: dict[str, Any] = {"transform": shifted(axes, shift), "zorder": ABOVE, "clip_on": False}
    (artist,) = axes.plot(
        *_xy(marks), style.marker, color=style.colour, ms=style.points, mec="white", mew=0.6, **look
    )
    _keep(canvas, artist, marks)
    flagged = [dot for dot in marks if "flags" in dot.row]
    if flagged:
        ring: dict[str, Any] = {"mfc": "none", "mec": BLACK, "mew": 1.2, "ms": style.points + RING}
        axes.plot(*_xy(flagged), "o", **ring, **look)


def draw_bars(axes: Axes, marks: Sequence[Dot], style: Style) -> list[float]:
    """Draw the intervals of the means; return their ends."""
    known = [dot for dot in marks if "low" in dot.row]
    if not known:
        return []
    low, high = ([float(dot.row[end]) for dot in known] for end in ("low", "high"))
    # By rounding, the value of runs without any spread may be outside of its interval.
    below = [max(0.0, dot.y - one) for dot, one in zip(known, low, strict=True)]
    above = [max(0.0, one - dot.y) for dot, one in zip(known, high, strict=True)]
    axes.errorbar(
        *_xy(known), yerr=[below, above], fmt="none", ecolor=style.colour, elinewidth=1.1,
        capsize=2, transform=shifted(axes, style.beside),
    )  # fmt: skip
    return low + high


def draw_hollow(canvas: Canvas, panels: Panels) -> bool:
    """Draw a hollow marker for each point without a result; return whether there is any."""
    anything = False
    for axes, plot in panels:
        lost: dict[tuple[Any, ...], list[str]] = {}
        for run in plot.runs:
            if run["state"] != OK:
                lost.setdefault(point_of(run), []).append(f"{run['run_id']}: {run['state']}")
        for style in plot.styles:
            rows = plot.empty(style)
            if not rows:
                continue
            anything = True
            (artist,) = axes.plot(
                [row["size"] for row in rows], [HEIGHT] * len(rows), style.marker, mfc="none",
                mec=style.colour, mew=1.4, ms=style.points + 1, ls="none",
                transform=shifted(axes, style.beside, axes.get_xaxis_transform()),
            )  # fmt: skip
            titles = ["; ".join(lost.get(point_of(row), ["no run"])) for row in rows]
            canvas.explain(artist, list(map(one_line, titles)))
            canvas.rows += map(no_result, rows)
    return anything


def no_result(row: Row) -> dict[str, Any]:
    """Return what the data have of a hollow marker."""
    about = {"drawn": "no result", "series": row["series"], "size": row["size"]}
    return about | {"state": row["not_ok"]}


def shifted(axes: Axes, points: float, base: Transform | None = None) -> Transform:
    """Return coordinates of data (or `base`), shifted sideways by points of the page."""
    from matplotlib.transforms import ScaledTranslation

    scale = axes.figure.dpi_scale_trans
    return (base or axes.transData) + ScaledTranslation(points / 72, 0, scale)


def _keep(canvas: Canvas, artist: Any, marks: Sequence[Dot]) -> None:
    canvas.explain(artist, [dot.title for dot in marks])
    canvas.rows += ({"quantity": artist.axes.get_ylabel(), **dot.row} for dot in marks)


def _xy(marks: Sequence[Dot]) -> tuple[list[float], list[float]]:
    return [dot.x for dot in marks], [dot.y for dot in marks]


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
    draw_legend(canvas, plot, entries)
    return canvas


def _draw_rates(canvas: Canvas, panels: Panels, plot: PlotData) -> int:
    """Draw every run, the mean of each point with its interval, and the ideal of the panel.

    Returns the number of points that could not be drawn: their size is unknown, or their runs lack
    the basis of most series.
    """
    basis = _shown_basis(plot.points)
    grows = any(row["work"] != 1 for row in plot.points if row["basis"] == basis)
    label = f"{BASES[basis].at_axis}{' x ranks' if grows else ''}"
    name, _, unit = label.partition(" [")
    heights: list[float] = []

    def value(row: Row) -> Value | None:
        if not (y := rate(row, basis)):
            return None
        ends = (row.get(f"samples_per_second_{end}") or None for end in ("low", "high"))
        low, high = ends if basis == "throughput" else (None, None)
        return Value(y, f"{significant(y)} {unit.rstrip(']') or name}", low, high)

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
        panels[0][0].set_title(f"{name.capitalize()}: {marks}")
    for axes, _ in panels:
        size_axis(axes, plot.sizes)
        log_axis(axes, "y", heights, ROOM if hollow else MARGIN)
        if not heights:
            where: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "color": GREY}
            axes.text(0.5, 0.5, "nothing to draw", **where)
    left_out = sum(bool(row["n_ok"] or not row["size"]) for row in plot.points)
    return left_out - [row.get("drawn") for row in canvas.rows].count("mean")


def _shown_basis(points: Sequence[Row]) -> str:
    """Return the basis of all series; if they differ, the most common, or the first at a tie."""
    bases = [str(row["basis"]) for row in points if row["n_ok"]] or ["throughput"]
    return max(dict.fromkeys(bases), key=bases.count)


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
    draw_legend(canvas, plot, [*hollow_entry(plot), *_gate_entry(plot), ideal_entry()])
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


def _efficiency(row: Row) -> Value | None:
    """Return the efficiency of a point, or of a run: in proportion to its rate."""
    point = row.get("point", row)
    if not point["efficiency"]:
        return None
    value, column = 100 * point["efficiency"], BASIS_COLUMNS[point["basis"]]
    if "run_id" not in row:
        return Value(value, f"{value:.1f} % of ideal", *_percent(row, "efficiency"))
    if not (usable(point, column) and usable(row, column)):
        return None
    ratio = row[column] / point[column]
    value *= ratio if BASES[point["basis"]].is_rate else 1 / ratio
    return Value(value, f"{value:.1f} % of ideal")


def _percent(row: Row, name: str) -> tuple[float | None, float | None]:
    """Return the limits of a share in percent."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return None if low is None else 100 * low, None if high is None else 100 * high


def _gate_entry(plot: PlotData) -> list[LegendEntry]:
    gate = plot.study.gates.efficiency
    words = "" if gate is None else f"gate: {gate * 100:g} % of ideal"
    return [(sample(color=BLACK, lw=1.4), words)] if words else []


def draw_karp_flatt(plot: PlotData) -> Canvas | None:
    """Draw e = (1/S - 1/q)/(1 - 1/q) with its interval (Karp and Flatt, CACM 1990).

    A constant e is a serial part, a rising e is overhead; at small sizes e is mostly noise.
    """

    def value(row: Row) -> Value | None:
        if row.get("karp_flatt") is None:
            return None
        e = 100 * row["karp_flatt"]
        return Value(e, f"e = {e:.3g} %", *_percent(row, "karp_flatt"))

    if not dots(plot.points, value):
        return None
    canvas, panels = split(f"{plot.study.name}: serial fraction after Karp and Flatt", plot)
    heights = [0.0]
    for axes, own in panels:
        axes.set(xlabel=plot.unit.plural, ylabel="serial fraction e [%]")
        heights += draw_series(canvas, axes, own, value)
        axes.axhline(0, color=GREY, lw=1, zorder=1)
    low, high = min(heights), max(heights)
    if draw_hollow(canvas, panels) or low < 0:
        low -= (high - low) * ROOM
    for axes, _ in panels:
        size_axis(axes, plot.sizes)
        plain_axis(axes, low, max(high, 0.1))
    notes = "a constant fraction is a serial part, a rising one is overhead"
    draw_title(canvas, f"{heading_lines(plot)}\n{notes}")
    draw_legend(canvas, plot, hollow_entry(plot))
    return canvas


def draw_cost(plot: PlotData) -> Canvas | None:
    """Draw GPU-hours against minutes for 1e6 samples or tokens; the lower left is better in both.

    A series that scales ideally is a horizontal line. Ringed points are Pareto-optimal: no other
    point is both faster and cheaper.
    """
    items = BASES[_shown_basis(plot.points)].counted

    def value(row: Row) -> Value | None:
        if not usable(row, f"{items}_per_second"):
            return None
        minutes = 1e6 / row[f"{items}_per_second"] / 60
        hours = row.get(COST)
        if "run_id" in row:
            hours = minutes * (row["nodes"] or 0) * (row["gpus_per_node"] or 0) / 60
        if not hours or hours < 0:
            return None
        text = f"{significant(hours)} GPU-hours, {significant(minutes)} minutes per million {items}"
        return Value(hours, text, x=minutes, more={"minutes_per_million": minutes})

    means = dots(plot.points, value)
    if len(means) < 2:
        return None
    canvas = opened(f"{plot.study.name}: cost against time of a million {items}", plot.paper)
    axes = canvas.figure.subplots()
    axes.set(xlabel=f"minutes per million {items}", ylabel=f"GPU-h per million {items}")
    # Both axes are measured: no mark is shifted.
    unshifted = plot._replace(styles=[style._replace(runs=0.0) for style in plot.styles])
    heights = draw_series(canvas, axes, unshifted, value)
    front: list[Dot] = []
    for dot in sorted(means):
        if not front or dot.y < front[-1].y:
            front.append(dot)
    axes.plot(*_xy(front), "o", mfc="none", mec=BLACK, mew=0.9, ms=12)
    log_axis(axes, "y", heights, ROOM)
    log_axis(axes, "x", [row["minutes_per_million"] for row in canvas.rows])
    taken: list[tuple[float, float]] = []
    for dot in front:
        x, y = axes.transData.transform((dot.x, dot.y))
        if not any(abs(x - a) < LABEL[0] and abs(y - b) < LABEL[1] for a, b in taken):
            taken.append((x, y))
            axes.annotate(
                counted(dot.row["size"], plot.unit.name), (dot.x, dot.y), xytext=(0, -9),
                textcoords="offset points", ha="center", va="top", fontsize="small", color=GREY,
            )  # fmt: skip
    draw_title(canvas, heading_lines(plot, len(plot.points) - len(means)))
    ring = sample(ls="none", marker="o", mfc="none", mec=BLACK, mew=0.9, ms=10)
    draw_legend(canvas, plot, [(ring, "Pareto-optimal")], names="legend")
    return canvas


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
        marks = dots(own.points, _speedup)
        draw_means(canvas, axes, marks, MEASURED)
        ends = draw_bars(axes, marks, MEASURED)
        heights += [*(dot.y for dot in marks), *(end for end in ends if end > 0)]
        _finish(axes, [dot.x for dot in marks], laws, base)
    for axes, _ in panels:
        log_axis(axes, "y", heights, doubling=True)
    notes = dict.fromkeys(note for law in fitted for note in law.notes)
    draw_title(canvas, "\n".join([heading_lines(plot), *notes]))
    black = sample(color=BLACK, marker="o", ls="none", mec="white", mew=0.6, ms=5)
    entries: list[LegendEntry] = [(black, "measured")]
    for law_name, (title, colour, dashes) in LAWS.items():
        if any(law.law == law_name for law in fitted):
            entries.append((sample(color=colour, ls=dashes, lw=1.5), title))
    entries += [(Patch(color=BEYOND), "not measured"), ideal_entry()]
    draw_legend(canvas, plot, entries, names="panels")
    return canvas


def _speedup(row: Row) -> Value | None:
    if not (row["speedup"] and row["ideal"]):
        return None
    text = f"{significant(row['speedup'], 3)} times the baseline"
    return Value(row["speedup"], text, row["speedup_low"], row["speedup_high"])


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
