"""Figure: a metric of each point over time, with its levels and the changes between them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from hpc_train.model.report_options import SCREEN
from hpc_train.model.track import Track
from hpc_train.reports.figures.axes import plain_axis
from hpc_train.reports.figures.canvas import NARROW, WIDE, Canvas, opened
from hpc_train.reports.figures.markers import GREY, Dot, draw_marks
from hpc_train.reports.figures.series_styles import COLOURS, Style
from hpc_train.reports.figures.titles_and_legend import draw_title
from hpc_train.reports.track_names import TrackInput, heading, metric_name, moment, value_text
from hpc_train.reports.value_format import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Panels of a figure; those with changes come first if there are more points.
MOST = 8
# More panels are in two columns.
ONE_COLUMN = 2
# Inches: of a panel, and of title, legend and labels.
PANEL, REST = 1.6, 1.5
WORSE, BETTER = COLOURS[1], COLOURS[2]
STYLE = Style("", COLOURS[0], "o", "-", 0.0, 0.0, 4.5)
# Characters of the name of a point.
LONGEST = 60
# Share of the height around the values.
MARGIN = 0.15


def draw(found: TrackInput, names: Sequence[str], metric: str) -> Canvas | None:
    """Draw a panel per point that has the metric; None if there is none."""
    every = [(t, n) for t, n in zip(found.tracks, names, strict=True) if metric_name(t) == metric]
    if not every:
        return None
    chosen = sorted(every, key=lambda pair: not pair[0].changes)[:MOST]
    shown = [pair for pair in every if pair in chosen]
    caption = one_line(f"{found.title}: {metric} over time")
    columns = 1 if len(shown) <= ONE_COLUMN else 2
    rows = -(-len(shown) // columns)
    canvas = opened(caption, SCREEN, NARROW if columns == 1 else WIDE, REST + PANEL * rows)
    panels = canvas.figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axes, (track, name) in zip(panels, shown, strict=False):
        _panel(canvas, axes, track, name, found)
    for spare in panels[len(shown) :]:
        spare.remove()
    left_out = f"\n{len(shown)} of {len(every)} points" if len(shown) < len(every) else ""
    draw_title(canvas, f"{one_line(found.title)}\n{metric} of each entry{left_out}")
    _legend(canvas)
    return canvas


def _panel(canvas: Canvas, axes: Axes, track: Track, name: str, found: TrackInput) -> None:
    when = [_when(found.entries[spot.entry].started) for spot, _ in track.known]
    values = [value.value for _, value in track.known]
    title = one_line(name)
    axes.set_title(title if len(title) < LONGEST else f"{title[: LONGEST - 1]}…", loc="left")
    axes.set_ylabel(heading(track))
    _dates(axes)
    _levels(axes, track, found)
    for (_, value), x in zip(track.known, when, strict=True):
        if value.low is not None and value.high is not None:
            axes.vlines([x], [value.low], [value.high], color=STYLE.colour, lw=0.8, alpha=0.35)
    dots = [_dot(track, name, found, i, x) for i, x in enumerate(when)]
    draw_marks(canvas, axes, dots, STYLE)
    # Long intervals of few runs would hide the steps.
    low, high = min(values), max(values)
    margin = MARGIN * (high - low) or 0.05 * high
    plain_axis(axes, low - margin, high + margin)
    axes.yaxis.set_major_locator(_few_ticks())


def _dot(track: Track, name: str, found: TrackInput, number: int, x: float) -> Dot:
    spot, value = track.known[number]
    started = found.entries[spot.entry].started
    words = f"{moment(started)}, {name}: {value_text(value)} {heading(track)}, n={spot.n_ok}"
    row: dict[str, Any] = {
        "drawn": "entry", "started": started, "point": name, "value": value.value,
        "low": value.low, "high": value.high, "runs": spot.n_ok,
    }  # fmt: skip
    return Dot(x, value.value, one_line(words), row)


def _levels(axes: Axes, track: Track, found: TrackInput) -> None:
    """Draw each level as a line, and each change as a vertical line."""
    from math import exp, log

    levels = track.levels()
    starts = [_when(found.entries[level[0][0].entry].started) for level in levels]
    ends = [_when(found.entries[level[-1][0].entry].started) for level in levels]
    for level, start, end in zip(levels, starts, ends, strict=True):
        mean = exp(sum(log(value.value) for _, value in level) / len(level))
        axes.plot([start, end], [mean, mean], color=GREY, lw=1.4, zorder=1)
    for change, start in zip(track.changes, starts[1:], strict=True):
        colour, dashes = (WORSE, "--") if change.ratio < 1 else (BETTER, "-.")
        axes.axvline(start, color=colour, ls=dashes, lw=1.2, zorder=1)


def _legend(canvas: Canvas) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=STYLE.colour, marker="o", ls="none", ms=4.5, mec="white", mew=0.6),
        Line2D([], [], color=GREY, lw=1.4),
        Line2D([], [], color=WORSE, lw=1.2, ls="--"),
        Line2D([], [], color=BETTER, lw=1.2, ls="-."),
    ]
    words = ["entry, line: its interval", "level", "change to worse", "change to better"]
    canvas.figure.legend(handles, words, loc="outside lower center", ncols=2, frameon=False)


def _when(started: str) -> float:
    """Return days since the epoch, matplotlib's unit of dates."""
    there = datetime.fromisoformat(started.removesuffix("Z")).replace(tzinfo=timezone.utc)
    return there.timestamp() / 86400


def _dates(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=timezone.utc, minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    words = ConciseDateFormatter(locator, tz=timezone.utc)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(words)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
