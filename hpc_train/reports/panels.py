"""Plain rows -> the two panels of the scaling figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.reports.looks import Look, layout, looks
from hpc_train.reports.scales import size_axis, value_axis
from hpc_train.reports.tables import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
Dots = list[tuple[float, float]]
GREY = "0.35"
DOTTED = (0, (1, 2))
GATE = "black"
RATES = {
    "throughput": ("samples_per_second", "throughput [samples/s]"),
    "token throughput": ("tokens_per_second", "throughput [tokens/s]"),
    "epoch time": ("epoch_time_s", "epochs per hour"),
    "time to train": ("time_to_train_s", "trainings per hour"),
}


class Drawing(NamedTuple):
    """The rows of one study, as the panels need them; `word` is what speedup is called."""

    runs: Sequence[Row]
    points: Sequence[Row]
    gate: float | None
    word: str


def draw_rates(axes: Axes, drawing: Drawing) -> int:
    """Draw every run, the mean of each point with its interval, and the ideal from each baseline.

    Returns how many points could not be drawn: their number of ranks is not known, or their runs
    lack the quantity that most are compared by.
    """
    basis = shown_basis(drawing.points)
    column, label = RATES[basis]
    values: list[float] = []
    drawn = intervals = 0
    for look in looks(drawing.points):
        own = [row for row in drawing.points if row["series"] == look.series]
        runs = [r for r in drawing.runs if r["series"] == look.series and r["state"] == OK]
        means = [row for row in own if _usable(row, column)]
        dots = _rates([row for row in runs if _usable(row, column)], basis, look.runs)
        line = _rates(means, basis, look.mean)
        ideal = _ideal(own, basis, look)
        axes.plot(*_xy(ideal), color=look.colour, lw=1, ls=DOTTED, alpha=0.6)
        axes.plot(
            *_xy(dots),
            look.marker,
            color=look.colour,
            ms=0.6 * look.marker_points,
            alpha=0.55,
            mec="none",
        )
        _line(axes, line, look)
        limits = _bars(axes, means, "samples_per_second", look) if basis == "throughput" else []
        values += [y for _, y in (*dots, *line, *ideal)] + limits
        drawn, intervals = drawn + len(means), intervals + len(limits)
    title = "each run, mean, interval" if intervals else "each run and their mean"
    axes.set(
        xlabel="ranks", ylabel=label, title=f"{label.partition(' [')[0].capitalize()}: {title}"
    )
    _finish(axes, drawing.points, values, doubling=False)
    return sum(bool(row["n_ok"] or not row["ranks"]) for row in drawing.points) - drawn


def draw_speedup(axes: Axes, drawing: Drawing) -> None:
    """Draw speedup with its intervals, the ideal q and the gate (gate x q)."""
    bar = 2 ** (0.4 * layout(drawing.points).slot)
    values: list[float] = []
    for look in looks(drawing.points):
        own = [row for row in drawing.points if row["series"] == look.series]
        sized = [row for row in own if row["ideal"] and row["ranks"]]
        ideal = [(row["ranks"] * look.mean, row["ideal"]) for row in sized]
        axes.plot(*_xy(ideal), color=look.colour, lw=1, ls=DOTTED, alpha=0.6)
        values += [y for _, y in ideal]
        if drawing.gate is not None:
            compared = [row for row in sized if not row["is_baseline"]]
            values += _gate(axes, compared, drawing.gate, look, bar)
        drawn = [row for row in own if row["ranks"] and row["speedup"]]
        line = [(row["ranks"] * look.mean, row["speedup"]) for row in drawn]
        _line(axes, line, look)
        values += [y for _, y in line] + _bars(axes, drawn, "speedup", look)
    title = f"{drawing.word.capitalize()}, interval against baseline"
    if not any(row["speedup_low"] is not None for row in drawing.points):
        title = f"{drawing.word.capitalize()} against baseline"
    axes.set(xlabel="ranks", ylabel=drawing.word, title=title)
    _finish(axes, drawing.points, values, doubling=True)


def shown_basis(points: Sequence[Row]) -> str:
    """Return the basis of all series; of different ones the most common, the first at a tie."""
    bases = [str(row["basis"]) for row in points if row["n_ok"]] or ["throughput"]
    return max(dict.fromkeys(bases), key=bases.count)


def _finish(axes: Axes, points: Sequence[Row], values: list[float], *, doubling: bool) -> None:
    hollow = False
    for look in looks(points):
        empty = [r for r in points if r["series"] == look.series and r["ranks"] and not r["n_ok"]]
        if empty:
            hollow = True
            where = [row["ranks"] * look.mean for row in empty]
            axes.plot(
                where, [0.04] * len(where), look.marker, mfc="none", mec=look.colour, mew=1.4,
                ms=look.marker_points + 1, ls="none", transform=axes.get_xaxis_transform(),
            )  # fmt: skip
    size_axis(axes, layout(points))
    value_axis(axes, values, hollow=hollow, doubling=doubling)
    if not values:
        axes.text(0.5, 0.5, "nothing to draw", transform=axes.transAxes, ha="center", color=GREY)


def _gate(axes: Axes, rows: Sequence[Row], gate: float, look: Look, bar: float) -> list[float]:
    """Draw gate x q as a bar under each point: a line would pass beside the points of others."""
    levels = [gate * row["ideal"] for row in rows]
    ends = [(row["ranks"] * look.mean / bar, row["ranks"] * look.mean * bar) for row in rows]
    axes.hlines(levels, [a for a, _ in ends], [b for _, b in ends], color=GATE, lw=1.4)
    return levels


def _line(axes: Axes, dots: Dots, look: Look) -> None:
    axes.plot(
        *_xy(dots), color=look.colour, marker=look.marker, ls=look.dashes, lw=1.4,
        ms=look.marker_points, mec="white", mew=0.6,
    )  # fmt: skip


def _bars(axes: Axes, rows: Sequence[Row], column: str, look: Look) -> list[float]:
    """Draw the intervals; return their ends."""
    known = [r for r in rows if r[f"{column}_low"] and r[f"{column}_high"]]
    if not known:
        return []
    low, high = ([float(r[f"{column}_{end}"]) for r in known] for end in ("low", "high"))
    middle = [float(r[column]) for r in known]
    # A rounding error may put the value of runs without any spread outside of its interval.
    below = [max(0.0, m - one) for m, one in zip(middle, low, strict=True)]
    above = [max(0.0, one - m) for m, one in zip(middle, high, strict=True)]
    axes.errorbar(
        [row["ranks"] * look.mean for row in known], middle, yerr=[below, above],
        fmt="none", ecolor=look.colour, elinewidth=1.1, capsize=2.5,
    )  # fmt: skip
    return low + high


def _ideal(rows: Sequence[Row], basis: str, look: Look) -> Dots:
    column, _ = RATES[basis]
    base = next((row for row in rows if row["is_baseline"] and _usable(row, column)), None)
    if not base:
        return []
    first = _rate(base[column], basis)
    return [(r["ranks"] * look.mean, first * r["ideal"]) for r in rows if r["ideal"] and r["ranks"]]


def _rates(rows: Sequence[Row], basis: str, shift: float) -> Dots:
    column, _ = RATES[basis]
    return [(row["ranks"] * shift, _rate(row[column], basis)) for row in rows]


def _rate(value: float, basis: str) -> float:
    return value if basis.endswith("throughput") else 3600 / value


def _usable(row: Row, column: str) -> bool:
    return bool(row["ranks"]) and row[column] is not None and row[column] > 0


def _xy(dots: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    ordered = sorted(dots)
    return [x for x, _ in ordered], [y for _, y in ordered]
