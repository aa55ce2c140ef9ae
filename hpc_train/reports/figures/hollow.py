"""Points and runs without a result -> hollow markers on the axis of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.drawing import Drawing, point_of
from hpc_train.reports.figures.looks import Look
from hpc_train.reports.figures.marks import Dot
from hpc_train.reports.figures.sheet import Sheet, explain
from hpc_train.reports.formats.plain import one_line
from hpc_train.reports.tables import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
Lost = Mapping[tuple[Any, ...], Sequence[Row]]
# Above the axis, as a share of the height.
HEIGHT = 0.04
# Size of the marker of a single run, relative to that of a point.
SMALLER = 0.7


def draw_hollow(sheet: Sheet, axes: Axes, drawing: Drawing, *, runs: bool = False) -> bool:
    """Draw a hollow marker for each point without a result; return whether there is any.

    A point without any result is a large marker; with `runs`, missing runs of other points are
    small markers.
    """
    lost: dict[tuple[Any, ...], list[Row]] = {}
    for row in drawing.runs:
        if row["state"] != OK:
            lost.setdefault(point_of(row), []).append(row)
    anything = False
    for look in drawing.looks:
        empty = [_point(row, look, lost) for row in drawing.empty(look)]
        some = [row for row in drawing.own(look) if row["ranks"] and row["n_ok"]] if runs else []
        fewer = [_runs(row, look, lost) for row in some if point_of(row) in lost]
        _draw(sheet, axes, empty, look, look.marker_points + 1)
        _draw(sheet, axes, fewer, look, SMALLER * look.marker_points)
        anything = anything or bool(empty or fewer)
    return anything


def _point(row: Row, look: Look, lost: Lost) -> Dot:
    about = {"drawn": "no result", "series": row["series"], "ranks": row["ranks"],
             "state": row["not_ok"]}  # fmt: skip
    return Dot(row["ranks"] * look.mean, HEIGHT, _words(lost.get(point_of(row), ())), about)


def _runs(row: Row, look: Look, lost: Lost) -> Dot:
    own = lost[point_of(row)]
    about = {"drawn": "runs without a result", "series": row["series"], "ranks": row["ranks"],
             "runs": len(own), "state": row["not_ok"]}  # fmt: skip
    return Dot(row["ranks"] * look.runs, HEIGHT, _words(own), about)


def _words(runs: Sequence[Row]) -> str:
    return one_line("; ".join(f"{run['run_id']}: {run['state']}" for run in runs) or "no run")


def _draw(sheet: Sheet, axes: Axes, dots: Sequence[Dot], look: Look, size: float) -> None:
    if dots:
        (artist,) = axes.plot(
            [dot.x for dot in dots], [dot.y for dot in dots], look.marker, mfc="none",
            mec=look.colour, mew=1.4, ms=size, ls="none", transform=axes.get_xaxis_transform(),
        )  # fmt: skip
        explain(sheet, artist, [dot.title for dot in dots])
        sheet.rows.extend(dot.row for dot in dots)
