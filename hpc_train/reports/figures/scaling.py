"""Figure: throughput and speedup against the number of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpc_train.model.metrics import BASES, BASIS_COLUMNS
from hpc_train.reports.figures.axes import size_axis, value_axis
from hpc_train.reports.figures.canvas import NARROW, WIDE, Canvas, opened
from hpc_train.reports.figures.markers import (
    DOTTED,
    GATE,
    Dot,
    draw_bars,
    draw_hollow,
    draw_means,
    draw_runs,
    mean_dot,
    nothing,
    run_dot,
    with_limits,
)
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.series_styles import Style
from hpc_train.reports.figures.titles_and_legend import (
    draw_legend,
    draw_title,
    heading_lines,
    limits,
)
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(plot: PlotData) -> Canvas:
    """Draw throughput and, if there is more than a baseline, speedup.

    Left: throughput [samples/s] (or 1/time, where there is none), every run a point, the mean a
    line, the ideal from each baseline. Right: speedup with intervals against the ideal. Points
    without any ok run are hollow on the axis and never joined.
    """
    compared = any(row["speedup"] and not row["is_baseline"] for row in plot.points)
    width = WIDE if compared else NARROW
    caption = f"{plot.study.name}: throughput and {plot.word} against the number of ranks"
    canvas = opened(caption, width)
    panels = canvas.figure.subplots(1, 2 if compared else 1, squeeze=False)[0]
    left_out = draw_rates(canvas, panels[0], plot)
    if compared:
        draw_speedup(canvas, panels[1], plot)
    draw_title(canvas.figure, heading_lines(plot, left_out))
    draw_legend(canvas.figure, plot, limits(plot))
    return canvas


def draw_rates(canvas: Canvas, axes: Axes, plot: PlotData) -> int:
    """Draw every run, the mean of each point with its interval, and the ideal from each baseline.

    Returns the number of points that could not be drawn: their number of ranks is unknown, or their
    runs lack the basis of most series.
    """
    basis = shown_basis(plot.points)
    label = BASES[basis].at_axis
    axes.set(xlabel="ranks", ylabel=label)
    values: list[float] = []
    drawn = intervals = 0
    for style in plot.styles:
        own = plot.own(style)
        means = _means(own, basis, style)
        runs = _runs(plot.own_runs(style), basis, style)
        ideal = _ideal(own, basis, style)
        _draw_ideal(canvas, axes, ideal, style)
        draw_runs(canvas, axes, runs, style)
        draw_means(canvas, axes, means, style, plot.gaps(style))
        limits = draw_bars(axes, means, style)
        values += [dot.y for dot in (*runs, *means)] + [y for _, y in ideal] + limits
        drawn, intervals = drawn + len(means), intervals + len(limits)
    title = "each run, mean, interval" if intervals else "each run and their mean"
    axes.set_title(f"{label.partition(' [')[0].capitalize()}: {title}")
    _finish(canvas, axes, plot, values, doubling=False)
    return sum(bool(row["n_ok"] or not row["ranks"]) for row in plot.points) - drawn


def draw_speedup(canvas: Canvas, axes: Axes, plot: PlotData) -> None:
    """Draw speedup with its intervals, the ideal q and the gate (gate x q)."""
    axes.set(xlabel="ranks", ylabel=plot.word)
    bar, gate = 2 ** (0.4 * plot.place.slot), plot.study.gates.efficiency
    values: list[float] = []
    for style in plot.styles:
        own = plot.own(style)
        sized = [row for row in own if row["ideal"] and row["ranks"]]
        ideal = [(row["ranks"] * style.mean, row["ideal"]) for row in sized]
        _draw_ideal(canvas, axes, ideal, style)
        values += [y for _, y in ideal]
        if gate is not None:
            compared = [row for row in sized if not row["is_baseline"]]
            values += _gate(axes, compared, gate, style, bar)
        line = [_speedup(row, style) for row in own if row["ranks"] and row["speedup"]]
        draw_means(canvas, axes, line, style, plot.gaps(style))
        values += [dot.y for dot in line] + draw_bars(axes, line, style)
    title = f"{plot.word.capitalize()}, interval against baseline"
    if not any(row["speedup_low"] is not None for row in plot.points):
        title = f"{plot.word.capitalize()} against baseline"
    axes.set_title(title)
    _finish(canvas, axes, plot, values, doubling=True)


def shown_basis(points: Sequence[Row]) -> str:
    """Return the basis of all series; if they differ, the most common, or the first at a tie."""
    bases = [str(row["basis"]) for row in points if row["n_ok"]] or ["throughput"]
    return max(dict.fromkeys(bases), key=bases.count)


def usable(row: Row, column: str) -> bool:
    """Whether a row has a size, and a value above zero."""
    return bool(row["ranks"]) and row[column] is not None and row[column] > 0


def _finish(
    canvas: Canvas, axes: Axes, plot: PlotData, values: list[float], *, doubling: bool
) -> None:
    hollow = draw_hollow(canvas, axes, plot, runs=not doubling)
    size_axis(axes, plot.place)
    value_axis(axes, values, hollow=hollow, doubling=doubling)
    if not values:
        nothing(axes)


def _draw_ideal(
    canvas: Canvas, axes: Axes, ideal: Sequence[tuple[float, float]], style: Style
) -> None:
    dots = sorted(ideal)
    axes.plot(
        [x for x, _ in dots], [y for _, y in dots], color=style.colour, lw=1, ls=DOTTED, alpha=0.6
    )
    canvas.rows.extend(
        {"quantity": axes.get_ylabel(), "drawn": "ideal", "series": style.series,
         "ranks": round(x / style.mean), "value": y}
        for x, y in dots
    )  # fmt: skip


def _gate(axes: Axes, rows: Sequence[Row], gate: float, style: Style, bar: float) -> list[float]:
    """Draw gate x q as a bar at each point: a line would not match points with another q."""
    levels = [gate * row["ideal"] for row in rows]
    ends = [(row["ranks"] * style.mean / bar, row["ranks"] * style.mean * bar) for row in rows]
    axes.hlines(levels, [a for a, _ in ends], [b for _, b in ends], color=GATE, lw=1.4)
    return levels


def _speedup(row: Row, style: Style) -> Dot:
    shown = f"{significant(row['speedup'], 3)} times the baseline"
    dot = mean_dot(row, row["ranks"] * style.mean, row["speedup"], shown)
    return with_limits(dot, row["speedup_low"], row["speedup_high"])


def _means(rows: Sequence[Row], basis: str, style: Style) -> list[Dot]:
    column, label = BASIS_COLUMNS[basis], BASES[basis].at_axis
    dots = []
    for row in rows:
        if usable(row, column):
            y = _rate(row[column], basis)
            dot = mean_dot(row, row["ranks"] * style.mean, y, _words(y, label))
            if basis == "throughput":
                limits = (row["samples_per_second_low"], row["samples_per_second_high"])
                dot = with_limits(dot, *(limit or None for limit in limits))
            dots.append(dot)
    return dots


def _runs(rows: Sequence[Row], basis: str, style: Style) -> list[Dot]:
    column, label = BASIS_COLUMNS[basis], BASES[basis].at_axis
    dots = []
    for row in rows:
        if row["state"] == OK and usable(row, column):
            y = _rate(row[column], basis)
            dots.append(run_dot(row, row["ranks"] * style.runs, y, _words(y, label)))
    return dots


def _ideal(rows: Sequence[Row], basis: str, style: Style) -> list[tuple[float, float]]:
    column = BASIS_COLUMNS[basis]
    base = next((row for row in rows if row["is_baseline"] and usable(row, column)), None)
    if not base:
        return []
    first = _rate(base[column], basis)
    return [
        (r["ranks"] * style.mean, first * r["ideal"]) for r in rows if r["ideal"] and r["ranks"]
    ]


def _rate(value: float, basis: str) -> float:
    return value if BASES[basis].is_rate else 3600 / value


def _words(value: float, label: str) -> str:
    name, _, unit = label.partition(" [")
    return f"{significant(value)} {unit.rstrip(']') or name}"
