"""Plain rows -> the names of points, series and quantities in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.jobs.study import ALONE
from hpc_train.reports.value_format import Row, whole
from hpc_train.runs.expected_runs import MISSING, ExpectedStudy


class SizeUnit(NamedTuple):
    """The key of a size in a row of points, and its name: `gpus`, `GPU`."""

    key: str
    name: str

    @property
    def plural(self) -> str:
        """The name on an axis and in a heading."""
        return f"{self.name}s"


# In the order in which `ideal` is computed from them.
UNITS = (SizeUnit("gpus", "GPU"), SizeUnit("ranks", "rank"), SizeUnit("nodes", "node"))
RANKS = UNITS[1]


def size_unit(points: Sequence[Mapping[str, Any]]) -> SizeUnit:
    """Return GPUs if each point with a size has them, else ranks, else nodes."""
    for unit in UNITS:
        lacking = [row for row in points if not row.get(unit.key)]
        sized = (row.get(other.key) for row in lacking for other in UNITS)
        if len(lacking) < len(points) and not any(sized):
            return unit
    return RANKS


def baseline_size(points: Sequence[Mapping[str, Any]], series: str, unit: SizeUnit) -> float | None:
    """Return the size to which a series is compared, q = 1; None if it is unknown."""
    for row in points:
        if row["series"] == series and row.get("ideal") and row.get(unit.key):
            return float(row[unit.key]) / float(row["ideal"])
    return None


T = TypeVar("T")
_NAMED = 3
UNKNOWN = "an unknown number of ranks"


def regimes(points: Sequence[Row]) -> list[str]:
    """Return the known regimes of the series, each once, in their order."""
    return [name for name in dict.fromkeys(row["regime"] for row in points) if name != "unknown"]


def series_with(regime: str, points: Sequence[Row]) -> str:
    """Return the names of the series with a regime, or their number if there are many."""
    own = list(dict.fromkeys(str(row["series"]) for row in points if row["regime"] == regime))
    return ", ".join(own) if len(own) <= _NAMED else f"{len(own)} series"


def rate(row: Row, basis: str) -> float | None:
    """Return what the axis of a basis shows: a rate, or the inverse of a time."""
    value, timed = row[BASIS_COLUMNS[basis]], BASES[basis]
    if not value:
        return None
    return float(value) if timed.is_rate else float(row["work"]) * timed.per_s / value


def counted(count: float, word: str) -> str:
    """Return `1 run`, `3 runs`."""
    return f"{whole(count)} {word}{'s' if count != 1 else ''}"


def place(row: Row) -> str:
    """Return `4 nodes, 16 GPUs`: the point of a row, without its series.

    Ranks are named if there is not one per GPU.
    """
    names = [("nodes", "node"), ("gpus", "GPU")]
    if row["ranks"] != row["gpus"]:
        names.append(("ranks", "rank"))
    return ", ".join(counted(row[name], word) for name, word in names if row[name]) or UNKNOWN


def sizes(points: Sequence[Row]) -> Callable[[Row], str]:
    """Return a function that names points: `16 GPUs`, in the unit of all, else by all sizes."""
    unit = size_unit(points)
    alike = Counter((row["series"], row[unit.key]) for row in points)

    def named(row: Row) -> str:
        if not row[unit.key] or alike[row["series"], row[unit.key]] > 1:
            return place(row)
        return counted(row[unit.key], unit.name)

    return named


def names(points: Sequence[Row]) -> Callable[[Row], str]:
    """Return a function that names points by size and series."""
    named = sizes(points)
    return lambda row: f"{named(row)}{under(row['series'])}"


def under(series: str) -> str:
    """Return ` under torchrun`, ` with env.X=1`, or nothing for the only series."""
    if series == ALONE:
        return ""
    axis, _, value = series.partition("=")
    return f" under {value}" if axis == "launcher" and ", " not in series else f" with {series}"


def by_series(points: Iterable[T], series: Callable[[T], str]) -> dict[str, list[T]]:
    """Group by series in one pass: there may be a series for each log."""
    found: dict[str, list[T]] = {}
    for point in points:
        found.setdefault(series(point), []).append(point)
    return found


def series_heading(points: Sequence[Row]) -> str:
    """Return the axis that names the series, if it is the same single axis for all."""
    labels = {str(row["series"]) for row in points}
    axes = {label.partition("=")[0] for label in labels if "=" in label}
    return axes.pop() if len(axes) == 1 and not any(", " in label for label in labels) else ""


def short_series(label: str, heading: str) -> str:
    """Return the label without the axis that is in the heading."""
    return label.removeprefix(f"{heading}=") if heading else label


def has_own_baselines(points: Sequence[Row]) -> bool:
    """Whether there are several series, each of them with a baseline of its own."""
    return len({row["series"] for row in points if row["is_baseline"]}) > 1


def one_size(points: Sequence[Row]) -> bool:
    """Whether there are points, all of them of one size."""
    names = ("nodes", "gpus_per_node", "tasks_per_node", "ranks")
    return len({tuple(row[name] for name in names) for row in points}) == 1


def foreign(study: ExpectedStudy) -> bool:
    """Whether the study is logs without run folders: how they began and ended is not recorded."""
    return bool(study.runs) and all(
        run.topology is None and not (run.axes or run.sizes) and run.state != MISSING
        for run in study.runs
    )
