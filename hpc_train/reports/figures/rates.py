"""Points -> the two panels of the scaling figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.drawing import Drawing
from hpc_train.reports.figures.hollow import draw_hollow
from hpc_train.reports.figures.looks import Look
from hpc_train.reports.figures.marks import (
    DOTTED,
    GATE,
    Dot,
    draw_bars,
    draw_means,
    draw_runs,
    mean_dot,
    nothing,
    run_dot,
    with_limits,
)
from hpc_train.reports.figures.scales import size_axis, value_axis
from hpc_train.reports.figures.sheet import Sheet
from hpc_train.reports.numbers import significant
from hpc_train.reports.tables import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
RATES = {
    "throughput": ("samples_per_second", "throughput [samples/s]"),
    "token throughput": ("tokens_per_second", "throughput [tokens/s]"),
    "epoch time": ("epoch_time_s", "epochs per hour"),
    "time to train": ("time_to_train_s", "trainings per hour"),
}


def draw_rates(sheet: Sheet, axes: Axes, drawing: Drawing) -> int:
    """Draw every run, the mean of each point with its interval, and the ideal from each baseline.

    Returns the number of points that could not be drawn: their number of ranks is unknown, or their
    runs lack the basis of most series.
    """
    basis = shown_basis(drawing.points)
    label = RATES[basis][1]
    axes.set(xlabel="ranks", ylabel=label)
    values: list[float] = []
    drawn = intervals = 0
    for look in drawing.looks:
        own = drawing.own(look)
        means = _means(own, basis, look)
        runs = _runs(drawing.own_runs(look), basis, look)
        ideal = _ideal(own, basis, look)
        _draw_ideal(sheet, axes, ideal, look)
        draw_runs(sheet, axes, runs, look)
        draw_means(sheet, axes, means, look, drawing.gaps(look))
        limits = draw_bars(axes, means, look)
        values += [dot.y for dot in (*runs, *means)] + [y for _, y in ideal] + limits
        drawn, intervals = drawn + len(means), intervals + len(limits)
    title = "each run, mean, interval" if intervals else "each run and their mean"
    axes.set_title(f"{label.partition(' [')[0].capitalize()}: {title}")
    _finish(sheet, axes, drawing, values, doubling=False)
    return sum(bool(row["n_ok"] or not row["ranks"]) for row in drawing.points) - drawn


def draw_speedup(sheet: Sheet, axes: Axes, drawing: Drawing) -> None:
    """Draw speedup with its intervals, the ideal q and the gate (gate x q)."""
    axes.set(xlabel="ranks", ylabel=drawing.word)
    bar, gate = 2 ** (0.4 * drawing.place.slot), drawing.study.gates.efficiency
    values: list[float] = []
    for look in drawing.looks:
        own = drawing.own(look)
        sized = [row for row in own if row["ideal"] and row["ranks"]]
        ideal = [(row["ranks"] * look.mean, row["ideal"]) for row in sized]
        _draw_ideal(sheet, axes, ideal, look)
        values += [y for _, y in ideal]
        if gate is not None:
            compared = [row for row in sized if not row["is_baseline"]]
            values += _gate(axes, compared, gate, look, bar)
        line = [_speedup(row, look) for row in own if row["ranks"] and row["speedup"]]
        draw_means(sheet, axes, line, look, drawing.gaps(look))
        values += [dot.y for dot in line] + draw_bars(axes, line, look)
    title = f"{drawing.word.capitalize()}, interval against baseline"
    if not any(row["speedup_low"] is not None for row in drawing.points):
        title = f"{drawing.word.capitalize()} against baseline"
    axes.set_title(title)
    _finish(sheet, axes, drawing, values, doubling=True)


def shown_basis(points: Sequence[Row]) -> str:
    """Return the basis of all series; if they differ, the most common, or the first at a tie."""
    bases = [str(row["basis"]) for row in points if row["n_ok"]] or ["throughput"]
    return max(dict.fromkeys(bases), key=bases.count)


def usable(row: Row, column: str) -> bool:
    """Whether a row has a size, and a value above zero."""
    return bool(row["ranks"]) and row[column] is not None and row[column] > 0


def _finish(
    sheet: Sheet, axes: Axes, drawing: Drawing, values: list[float], *, doubling: bool
) -> None:
    hollow = draw_hollow(sheet, axes, drawing, runs=not doubling)
    size_axis(axes, drawing.place)
    value_axis(axes, values, hollow=hollow, doubling=doubling)
    if not values:
        nothing(axes)


def _draw_ideal(sheet: Sheet, axes: Axes, ideal: Sequence[tuple[float, float]], look: Look) -> None:
    dots = sorted(ideal)
    axes.plot(
        [x for x, _ in dots], [y for _, y in dots], color=look.colour, lw=1, ls=DOTTED, alpha=0.6
    )
    sheet.rows.extend(
        {"quantity": axes.get_ylabel(), "drawn": "ideal", "series": look.series,
         "ranks": round(x / look.mean), "value": y}
        for x, y in dots
    )  # fmt: skip


def _gate(axes: Axes, rows: Sequence[Row], gate: float, look: Look, bar: float) -> list[float]:
    """Draw gate x q as a bar at each point: a line would not match points with another q."""
    levels = [gate * row["ideal"] for row in rows]
    ends = [(row["ranks"] * look.mean / bar, row["ranks"] * look.mean * bar) for row in rows]
    axes.hlines(levels, [a for a, _ in ends], [b for _, b in ends], color=GATE, lw=1.4)
    return levels


def _speedup(row: Row, look: Look) -> Dot:
    shown = f"{significant(row['speedup'], 3)} times the baseline"
    dot = mean_dot(row, row["ranks"] * look.mean, row["speedup"], shown)
    return with_limits(dot, row["speedup_low"], row["speedup_high"])


def _means(rows: Sequence[Row], basis: str, look: Look) -> list[Dot]:
    column, label = RATES[basis]
    dots = []
    for row in rows:
        if usable(row, column):
            y = _rate(row[column], basis)
            dot = mean_dot(row, row["ranks"] * look.mean, y, _words(y, label))
            if basis == "throughput":
                limits = (row["samples_per_second_low"], row["samples_per_second_high"])
                dot = with_limits(dot, *(limit or None for limit in limits))
            dots.append(dot)
    return dots


def _runs(rows: Sequence[Row], basis: str, look: Look) -> list[Dot]:
    column, label = RATES[basis]
    dots = []
    for row in rows:
        if row["state"] == OK and usable(row, column):
            y = _rate(row[column], basis)
            dots.append(run_dot(row, row["ranks"] * look.runs, y, _words(y, label)))
    return dots


def _ideal(rows: Sequence[Row], basis: str, look: Look) -> list[tuple[float, float]]:
    column, _ = RATES[basis]
    base = next((row for row in rows if row["is_baseline"] and usable(row, column)), None)
    if not base:
        return []
    first = _rate(base[column], basis)
    return [(r["ranks"] * look.mean, first * r["ideal"]) for r in rows if r["ideal"] and r["ranks"]]


def _rate(value: float, basis: str) -> float:
    return value if basis.endswith("throughput") else 3600 / value


def _words(value: float, label: str) -> str:
    name, _, unit = label.partition(" [")
    return f"{significant(value)} {unit.rstrip(']') or name}"
