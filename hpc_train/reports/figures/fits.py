"""Figure: the laws that were fitted to each series, with their bands."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING, Any

import msgspec

from hpc_train.reports.figures.axes import set_ticks, value_axis
from hpc_train.reports.figures.canvas import Canvas
from hpc_train.reports.figures.markers import (
    DOTTED,
    GREY,
    draw_bars,
    draw_means,
    mean_dot,
    with_limits,
)
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.series_styles import COLOURS, Style
from hpc_train.reports.figures.small_multiples import faceted, shown_in
from hpc_train.reports.figures.titles_and_legend import (
    LegendEntry,
    draw_legend,
    draw_title,
    heading_lines,
    ideal_entry,
)
from hpc_train.reports.point_and_series_names import baseline_size
from hpc_train.reports.value_format import Row, significant
from hpc_train.scaling.scaling_fits import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAWS = {"amdahl": "Amdahl", "gustafson": "Gustafson", "usl": "USL"}
LINES: dict[str, tuple[str, Any]] = {
    "amdahl": (COLOURS[0], "-"),
    "gustafson": (COLOURS[2], "-."),
    "usl": (COLOURS[1], "--"),
}
BEYOND = "0.93"
MEASURED = "black"
ENDS = ("low", "high")


def draw(plot: PlotData) -> Canvas | None:
    """Draw the speedups of each series and its laws with bands; shade the range beyond the data.

    A peak is drawn only if the fit bounds it.
    """
    fitted = [law for law in plot.laws if law.curve and not law.refused]
    series = {law.series for law in fitted}
    styles = [style for style in plot.styles if style.series in series]
    if not styles:
        return None
    caption = f"{plot.study.name}: laws of scaling fitted to {plot.word}"
    canvas, panels = faceted(caption, styles, plot)
    drawn: list[float] = []
    for axes, style in zip(panels, styles, strict=False):
        axes.set(xlabel=plot.unit.plural, ylabel=plot.word)
        laws = [law for law in fitted if law.series == style.series]
        base = baseline_size(plot.own(style), style.series, plot.unit) or 1.0
        drawn += _draw_series(canvas, axes, plot.own(style), [_sized(law, base) for law in laws])
        _finish(axes, plot.own(style), laws, base)
    for axes in panels:
        value_axis(axes, drawn, hollow=False, doubling=True)
    shown = shown_in(plot, styles)
    notes = _notes(
        [law for law in fitted if law.series in {style.series for style in shown.styles}]
    )
    draw_title(canvas, "\n".join([heading_lines(shown, runs=False), *notes]))
    kinds = [name for name in LAWS if any(law.law == name for law in fitted)]
    draw_legend(canvas, plot, _entries(kinds), series=False)
    return canvas


def _notes(laws: Sequence[Fit]) -> list[str]:
    """Return the notes of the fits, each once, with its laws."""
    names: dict[str, list[str]] = {}
    for law in laws:
        for note in law.notes:
            names.setdefault(note, []).append(LAWS[law.law])
    every = {LAWS[law.law] for law in laws}
    return [
        note if {*said} == every else f"{', '.join(dict.fromkeys(said))}: {note}"
        for note, said in names.items()
    ]


def _sized(law: Fit, base: float) -> Fit:
    """Return the law with sizes instead of multiples of the baseline's size."""
    curve = [msgspec.structs.replace(point, q=point.q * base) for point in law.curve]
    peak = law.peak
    if peak is not None:
        ends = {end: None if (at := getattr(peak, end)) is None else at * base for end in ENDS}
        peak = msgspec.structs.replace(peak, value=peak.value * base, **ends)
    return msgspec.structs.replace(law, curve=tuple(curve), peak=peak)


def _draw_series(
    canvas: Canvas, axes: Axes, rows: Sequence[Row], laws: Sequence[Fit]
) -> list[float]:
    black = Style("", MEASURED, "o", "none", 0.0, 0.0, 5.0)
    values: list[float] = []
    for law in laws:
        values += _draw_law(canvas, axes, law)
    dots = []
    for row in rows:
        if row["speedup"] and row["ideal"] and row["size"]:
            shown = f"{significant(row['speedup'], 3)} times the baseline"
            dot = mean_dot(row, row["speedup"], shown)
            dots.append(with_limits(dot, row["speedup_low"], row["speedup_high"]))
    draw_means(canvas, axes, dots, black)
    values += [dot.y for dot in dots] + [low for low in draw_bars(axes, dots, black) if low > 0]
    return values


def _finish(axes: Axes, rows: Sequence[Row], laws: Sequence[Fit], base: float) -> None:
    """Draw the ideal, shade the sizes beyond the largest point, and set the ticks."""
    from matplotlib.ticker import NullFormatter

    sizes = sorted({float(row["size"]) for row in rows if row["size"] and row["speedup"]})
    every = [point.q * base for law in laws for point in law.curve] + sizes
    ends, last = (min(every), max(every)), max(law.largest_q for law in laws) * base
    axes.plot(ends, [x / base for x in ends], color=GREY, lw=1.2, ls=DOTTED, zorder=1)
    low, high = ends[0] / 1.15, ends[1] * 1.15
    if ends[1] > last:
        axes.axvspan(last, high, color=BEYOND, zorder=0, lw=0)
    axes.set_xlim(low, high)
    sizes = [*sizes, *([ends[1]] if ends[1] > last else [])]
    set_ticks(axes, sizes, log2(high / low))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()


def _draw_law(canvas: Canvas, axes: Axes, law: Fit) -> list[float]:
    colour, dashes = LINES[law.law]
    qs = [point.q for point in law.curve]
    axes.plot(qs, [point.speedup for point in law.curve], color=colour, ls=dashes, lw=1.5)
    band = [p for p in law.curve if p.low is not None and p.high is not None and p.low > 0]
    if band:
        lows, highs = [p.low or 0.0 for p in band], [p.high or 0.0 for p in band]
        axes.fill_between([p.q for p in band], lows, highs, color=colour, alpha=0.15, lw=0)
    about = {"quantity": axes.get_ylabel(), "drawn": law.law, "series": law.series}
    canvas.rows.extend(
        about
        | {"size": p.q, "value": p.speedup, "low": p.low, "high": p.high, "measured": p.measured}
        for p in law.curve
    )
    if law.peak is not None and qs[0] <= law.peak.value <= qs[-1]:
        axes.axvline(law.peak.value, color=colour, ls=dashes, lw=0.9, ymax=0.9)
        # On the side of the line with more space.
        left = law.peak.value**2 < qs[0] * qs[-1]
        pad, side = (" ", "left") if left else ("", "right")
        words = f"{pad}{LAWS[law.law]} peak \n{pad}{_interval(law)} "
        axes.text(
            law.peak.value, 0.03, words, color=colour, fontsize="small", va="bottom", ha=side,
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip
    return [p.speedup for p in law.curve if p.speedup > 0]


def _interval(law: Fit) -> str:
    peak = law.peak
    if peak is None or peak.low is None or peak.high is None:
        return f"{peak.value:.3g}" if peak else ""
    return f"{peak.value:.3g} [{peak.low:.3g}, {peak.high:.3g}]"


def _entries(kinds: Sequence[str]) -> list[LegendEntry]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    measured = Line2D([], [], color=MEASURED, marker="o", ls="none", mec="white", mew=0.6, ms=5)
    entries: list[LegendEntry] = [(measured, "measured")]
    for kind in kinds:
        colour, dashes = LINES[kind]
        entries.append((Line2D([], [], color=colour, ls=dashes, lw=1.5), LAWS[kind]))
    entries.append((Patch(color=BEYOND), "not measured"))
    return [*entries, ideal_entry()]
