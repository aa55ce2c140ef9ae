"""Figure: the laws that were fitted to each series, with their bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.by_size import Value, dots, draw_bars, draw_means
from hpc_train.reports.figures.canvas import (
    BLACK,
    DOTTED,
    GREY,
    Canvas,
    LegendEntry,
    draw_legend,
    draw_title,
    faceted,
    heading_lines,
    ideal_entry,
    log_axis,
    sample,
    size_axis,
)
from hpc_train.reports.figures.plot_data import COLOURS, PlotData, Style
from hpc_train.reports.words import Row, baseline_size, regimes, significant
from hpc_train.scaling.scaling_fits import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    draw_title(canvas, "\n".join([heading_lines(plot, runs=False), *_notes(fitted)]))
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


def _notes(laws: Sequence[Fit]) -> list[str]:
    """Return the notes of the fits, each once, with its laws."""
    names: dict[str, list[str]] = {}
    for law in laws:
        for note in law.notes:
            names.setdefault(note, []).append(LAWS[law.law][0])
    every = {LAWS[law.law][0] for law in laws}
    return [
        note if {*said} == every else f"{', '.join(dict.fromkeys(said))}: {note}"
        for note, said in names.items()
    ]


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
