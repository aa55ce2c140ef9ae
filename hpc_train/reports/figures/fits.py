"""Figure: the laws that were fitted to each series, with their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.model.law import Fit
from hpc_train.reports.figures.drawing import Drawing
from hpc_train.reports.figures.facets import faceted, shown_in
from hpc_train.reports.figures.legend import (
    Entry,
    draw_legend,
    draw_title,
    heading_lines,
    ideal_entry,
)
from hpc_train.reports.figures.looks import COLOURS, Look
from hpc_train.reports.figures.marks import (
    DOTTED,
    GREY,
    draw_bars,
    draw_means,
    mean_dot,
    with_limits,
)
from hpc_train.reports.figures.scales import value_axis
from hpc_train.reports.figures.sheet import Sheet
from hpc_train.reports.numbers import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
LAWS = {"amdahl": "Amdahl", "gustafson": "Gustafson", "usl": "USL"}
LINES: dict[str, tuple[str, Any]] = {
    "amdahl": (COLOURS[0], "-"),
    "gustafson": (COLOURS[2], "-."),
    "usl": (COLOURS[1], "--"),
}
BEYOND = "0.93"
MEASURED = "black"
TICKS = 8


def draw(drawing: Drawing) -> Sheet | None:
    """Draw each series' speedups, the laws with their bands, and a shade beyond the measurements.

    A peak is drawn only if the fit bounds it.
    """
    fitted = [law for law in drawing.laws if law.curve and not law.refused]
    series = {law.series for law in fitted}
    looks = [look for look in drawing.looks if look.series in series]
    if not looks:
        return None
    caption = f"{drawing.study.name}: laws of scaling fitted to {drawing.word}"
    sheet, panels = faceted(caption, looks, drawing)
    drawn: list[float] = []
    for axes, look in zip(panels, looks, strict=False):
        axes.set(xlabel="resources q, baseline = 1", ylabel=drawing.word)
        laws = [law for law in fitted if law.series == look.series]
        drawn += _draw_series(sheet, axes, drawing.own(look), laws, look)
    for axes in panels:
        value_axis(axes, drawn, hollow=False, doubling=True)
    shown = shown_in(drawing, looks)
    notes = _notes([law for law in fitted if law.series in {look.series for look in shown.looks}])
    draw_title(sheet.canvas, "\n".join([heading_lines(shown, runs=False), *notes]))
    kinds = [name for name in LAWS if any(law.law == name for law in fitted)]
    draw_legend(sheet.canvas, drawing, _entries(kinds), series=False)
    return sheet


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
    sheet: Sheet, axes: Axes, rows: Sequence[Row], laws: Sequence[Fit], look: Look
) -> list[float]:
    black = look._replace(colour=MEASURED, marker="o", dashes="none", marker_points=5)
    values: list[float] = []
    for law in laws:
        values += _draw_law(sheet, axes, law)
    dots = []
    for row in rows:
        if row["speedup"] and row["ideal"]:
            shown = f"{significant(row['speedup'], 3)} times the baseline"
            dot = mean_dot(row, row["ideal"], row["speedup"], shown)
            dots.append(with_limits(dot, row["speedup_low"], row["speedup_high"]))
    draw_means(sheet, axes, dots, black)
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


def _draw_law(sheet: Sheet, axes: Axes, law: Fit) -> list[float]:
    colour, dashes = LINES[law.law]
    qs = [point.q for point in law.curve]
    axes.plot(qs, [point.speedup for point in law.curve], color=colour, ls=dashes, lw=1.5)
    band = [p for p in law.curve if p.low is not None and p.high is not None and p.low > 0]
    if band:
        lows, highs = [p.low or 0.0 for p in band], [p.high or 0.0 for p in band]
        axes.fill_between([p.q for p in band], lows, highs, color=colour, alpha=0.15, lw=0)
    about = {"quantity": axes.get_ylabel(), "drawn": law.law, "series": law.series}
    sheet.rows.extend(
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


def _entries(kinds: Sequence[str]) -> list[Entry]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    measured = Line2D([], [], color=MEASURED, marker="o", ls="none", mec="white", mew=0.6, ms=5)
    entries: list[Entry] = [(measured, "measured")]
    for kind in kinds:
        colour, dashes = LINES[kind]
        entries.append((Line2D([], [], color=colour, ls=dashes, lw=1.5), LAWS[kind]))
    entries.append((Patch(color=BEYOND), "not measured"))
    return [*entries, ideal_entry()]
