"""Figure: the laws that were fitted to each series, with their bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.model.scaling_fit import Fit
from hpc_train.reports.figures.axes import value_axis
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
from hpc_train.reports.figures.titles_and_legend import (
    LegendEntry,
    draw_legend,
    draw_title,
    faceted,
    heading_lines,
    ideal_entry,
    shown_in,
)
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.value_format import significant

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
TICKS = 8


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
        axes.set(xlabel="resources q, baseline = 1", ylabel=plot.word)
        laws = [law for law in fitted if law.series == style.series]
        drawn += _draw_series(canvas, axes, plot.own(style), laws, style)
    for axes in panels:
        value_axis(axes, drawn, hollow=False, doubling=True)
    shown = shown_in(plot, styles)
    notes = _notes(
        [law for law in fitted if law.series in {style.series for style in shown.styles}]
    )
    draw_title(canvas.figure, "\n".join([heading_lines(shown, runs=False), *notes]))
    kinds = [name for name in LAWS if any(law.law == name for law in fitted)]
    draw_legend(canvas.figure, plot, _entries(kinds), series=False)
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


def _draw_series(
    canvas: Canvas, axes: Axes, rows: Sequence[Row], laws: Sequence[Fit], style: Style
) -> list[float]:
    black = style._replace(colour=MEASURED, marker="o", dashes="none", marker_points=5)
    values: list[float] = []
    for law in laws:
        values += _draw_law(canvas, axes, law)
    dots = []
    for row in rows:
        if row["speedup"] and row["ideal"]:
            shown = f"{significant(row['speedup'], 3)} times the baseline"
            dot = mean_dot(row, row["ideal"], row["speedup"], shown)
            dots.append(with_limits(dot, row["speedup_low"], row["speedup_high"]))
    draw_means(canvas, axes, dots, black)
    values += [dot.y for dot in dots] + [low for low in draw_bars(axes, dots, black) if low > 0]
    last = max(law.largest_q for law in laws)
    qs = [point.q for law in laws for point in law.curve] + [dot.x for dot in dots]
    ends = (min(qs), max(qs))
    axes.plot(ends, ends, color=GREY, lw=1.2, ls=DOTTED, zorder=1)
    _finish(axes, sorted({dot.x for dot in dots}), ends, last)
    return values


def _finish(axes: Axes, sizes: Sequence[float], ends: tuple[float, float], last: float) -> None:
    from matplotlib.ticker import NullFormatter

    axes.set_xscale("log", base=2)
    low, high = ends[0] / 1.15, ends[1] * 1.15
    if ends[1] > last:
        axes.axvspan(last, high, color=BEYOND, zorder=0, lw=0)
    axes.set_xlim(low, high)
    sizes = [*sizes, *([ends[1]] if ends[1] > last else [])]
    ticks = sizes[:: -(-len(sizes) // TICKS) or 1]
    axes.set_xticks(ticks, [f"{size:.4g}" for size in ticks])
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
        about | {"q": p.q, "value": p.speedup, "low": p.low, "high": p.high, "measured": p.measured}
        for p in law.curve
    )
    if law.peak is not None and qs[0] <= law.peak.value <= qs[-1]:
        axes.axvline(law.peak.value, color=colour, ls=dashes, lw=0.9, ymax=0.9)
        # On the side of the line with more space.
        left = law.peak.value**2 < qs[0] * qs[-1]
        pad, side = (" ", "left") if left else ("", "right")
        words = f"{pad}{LAWS[law.law]} peak \n{pad}q = {_interval(law)} "
        axes.text(
            law.peak.value, 0.03, words, color=colour, fontsize=7.5, va="bottom", ha=side,
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
