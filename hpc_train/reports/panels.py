"""Plain rows -> the two panels of the scaling figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.reports.tables import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
# Okabe and Ito's colours, without the yellow, which is lost on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))
GREY = "0.45"
# So far apart, in powers of two, stand the series at one size.
STEP = 0.06
# So far right of its mean stands a run, or the mean's marker would hide it.
ASIDE = 2**0.06
RATES = {
    "throughput": ("samples_per_second", "throughput [samples/s]"),
    "epoch time": ("epoch_time_s", "epochs per hour"),
    "time to train": ("time_to_train_s", "trainings per hour"),
}


class Look(NamedTuple):
    """How one series is drawn; `shift` multiplies its x."""

    series: str
    colour: str
    marker: str
    dashes: Any
    shift: float


def draw_throughput(axes: Axes, runs: Sequence[Row], points: Sequence[Row]) -> None:
    """Draw every run, the mean of each point with its interval, and the ideal from the baseline."""
    bases = dict.fromkeys(row["basis"] for row in points)
    basis = next(iter(bases)) if len(bases) == 1 else "throughput"
    column, label = RATES[basis]
    for look, own in _series(points):
        mine = [r for r in runs if r["series"] == look.series and r["state"] == OK]
        beside = look._replace(shift=look.shift * ASIDE)
        dots = _xy(_rates([row for row in mine if _usable(row, column)], basis, beside))
        axes.plot(*dots, look.marker, color=look.colour, ms=3.5, alpha=0.6, mec="none")
        drawn = [row for row in own if _usable(row, column)]
        _line(axes, _rates(drawn, basis, look), look)
        if basis == "throughput":
            _bars(axes, drawn, "samples_per_second", look)
        _ideal(axes, own, basis, look)
        _hollow(axes, [row for row in own if not row["n_ok"]], look)
    axes.set(xlabel="ranks", ylabel=label, title="Throughput: each run, mean, interval")
    _size_axis(axes, points)
    _plain_ticks(axes, base=10, between=(1, 2, 3, 5))


def draw_speedup(axes: Axes, points: Sequence[Row], gate: float | None, word: str) -> None:
    """Draw speedup with its intervals, the ideal q and the gate (gate x q)."""
    sized = [row for row in points if row["ideal"] and row["ranks"]]
    ideal = sorted({(row["ranks"], row["ideal"]) for row in sized})
    # Points of one rank count may have different q when series differ in their baseline.
    if len(dict(ideal)) == len(ideal):
        axes.plot(*_xy(ideal), color=GREY, lw=1, ls=(0, (1, 2)), label="ideal")
        if gate is not None:
            limit = [(x, gate * q) for x, q in ideal]
            axes.plot(*_xy(limit), color="black", lw=1.2, ls=(0, (6, 3)), label=f"gate {gate:.0%}")
    for look, own in _series(points):
        drawn = [row for row in own if row["ranks"] and row["speedup"]]
        _line(axes, [(row["ranks"] * look.shift, row["speedup"]) for row in drawn], look)
        _bars(axes, drawn, "speedup", look)
        _hollow(axes, [row for row in own if not row["n_ok"]], look)
    axes.set(xlabel="ranks", ylabel=word, title=f"{word.capitalize()}, interval against baseline")
    _size_axis(axes, points)
    _plain_ticks(axes, base=2, between=(1,))


def _series(points: Sequence[Row]) -> Iterator[tuple[Look, list[Row]]]:
    names = list(dict.fromkeys(str(row["series"]) for row in points))
    for i, name in enumerate(names):
        shift = 2 ** (STEP * (i - (len(names) - 1) / 2))
        k = i % len(COLOURS)
        yield (
            Look(name, COLOURS[k], MARKERS[k], DASHES[k], shift),
            [row for row in points if row["series"] == name],
        )


def _line(axes: Axes, dots: list[tuple[float, float]], look: Look) -> None:
    axes.plot(
        *_xy(dots), color=look.colour, marker=look.marker, ls=look.dashes, lw=1.5, ms=6,
        mec="white", mew=0.6, label=look.series,
    )  # fmt: skip


def _bars(axes: Axes, rows: Sequence[Row], column: str, look: Look) -> None:
    with_interval = [r for r in rows if r[f"{column}_low"] and r[f"{column}_high"]]
    if with_interval:
        axes.errorbar(
            [row["ranks"] * look.shift for row in with_interval],
            [row[column] for row in with_interval],
            yerr=[
                [row[column] - row[f"{column}_low"] for row in with_interval],
                [row[f"{column}_high"] - row[column] for row in with_interval],
            ],
            fmt="none", ecolor=look.colour, elinewidth=1.2, capsize=3,
        )  # fmt: skip


def _ideal(axes: Axes, rows: Sequence[Row], basis: str, look: Look) -> None:
    column, _ = RATES[basis]
    base = next((row for row in rows if row["is_baseline"] and _usable(row, column)), None)
    if base:
        first = _rate(base[column], basis)
        line = [
            (r["ranks"] * look.shift, first * r["ideal"]) for r in rows if r["ideal"] and r["ranks"]
        ]
        axes.plot(*_xy(line), color=GREY, lw=1, ls=(0, (1, 2)), label="ideal")


def _hollow(axes: Axes, rows: Sequence[Row], look: Look) -> None:
    where = [row["ranks"] * look.shift for row in rows if row["ranks"]]
    if where:
        axes.plot(
            where, [0.025] * len(where), look.marker, mfc="none", mec=look.colour, mew=1.4, ms=8,
            ls="none", transform=axes.get_xaxis_transform(), clip_on=False,
            label=f"{look.series}: no ok run",
        )  # fmt: skip


def _size_axis(axes: Axes, points: Sequence[Row]) -> None:
    sizes = sorted({row["ranks"] for row in points if row["ranks"]})
    axes.set_xscale("log", base=2)
    if sizes:
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
    axes.minorticks_off()


def _plain_ticks(axes: Axes, base: int, between: tuple[float, ...]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_yscale("log", base=base)
    low, high = axes.get_ylim()
    # Room for the hollow markers on the axis, below the lowest point.
    axes.set_ylim(low / 1.3, high)
    axes.yaxis.set_major_locator(LogLocator(base, subs=between))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    axes.minorticks_off()


def _rates(rows: Sequence[Row], basis: str, look: Look) -> list[tuple[float, float]]:
    column, _ = RATES[basis]
    return [(row["ranks"] * look.shift, _rate(row[column], basis)) for row in rows]


def _rate(value: float, basis: str) -> float:
    return value if basis == "throughput" else 3600 / value


def _usable(row: Row, column: str) -> bool:
    return bool(row["ranks"]) and row[column] is not None and row[column] > 0


def _xy(dots: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    ordered = sorted(dots)
    return [x for x, _ in ordered], [y for _, y in ordered]
