"""Report: title, tables, figures, notes and caveats, before any format; options; words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec

from hpc_train.base.metrics import BASES, BASIS_COLUMNS, POINT_METRICS
from hpc_train.base.values import Value
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.study import ALONE
from hpc_train.runs.expected_runs import MISSING, ExpectedStudy
from hpc_train.scaling.measurements import IMPLAUSIBLE, FlagCode, Target
from hpc_train.scaling.points import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.scaling.caveats import ApartPoints, SlowRun


# The state of a run with a result.
OK = "COMPLETED"

# How lines of the summary begin that are not the answer.
CAVEATS, MEASURED, NOT_KNOWN = "Caveats: ", "Measured: ", "Not known: "


class Column(Value, frozen=True):
    """A column of a report's table: key in CSV and JSON, heading, alignment.

    Where a table is too wide, columns with `drop` above 0 are left out, the lowest first; cells of
    `prose` are wrapped before that, other cells after it.
    """

    key: str
    heading: str
    align: Literal["left", "right"] = "right"
    drop: int = 0
    prose: bool = False


class ReportTable(Value, frozen=True, kw_only=True):
    """Rows in order; each row has one text per column.

    `records` is the same table for JSON and CSV: every row and column, including those not shown;
    `key` is its name in JSON (`rows`, `runs`).
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    key: str = ""
    records: Sequence[dict[str, Any]] = ()


# A column, and the text of a row in it.
Shown = tuple[Column, Callable[[Any], str]]


def table_of(
    title: str,
    key: str,
    columns: Sequence[Shown],
    rows: Sequence[Any],
    records: Sequence[dict[str, Any]] | None = None,
) -> ReportTable:
    """Return a table of columns with the text of each row; `records` are the rows if not given."""
    return ReportTable(
        title=title,
        columns=tuple(column for column, _ in columns),
        rows=tuple(tuple(text(row) for _, text in columns) for row in rows),
        key=key,
        records=tuple(map(dict, rows)) if records is None else records,
    )


def column_of(key: str, heading: str, text: Callable[[Any], str] = str, **layout: Any) -> Shown:
    """Return a column whose cells are the `text` of the value that a row has by its key."""
    return Column(key, heading, **layout), lambda row: text(row[key])


def words_of(headings: Mapping[str, str], prose: Collection[str] = ()) -> list[Shown]:
    """Return columns of texts by their keys, with their headings; those of `prose` are wrapped."""
    return [
        column_of(
            key, heading, lambda value: str(value or ABSENT), align="left", prose=key in prose
        )
        for key, heading in headings.items()
    ]


class Figure(Value, frozen=True, kw_only=True):
    """A drawn figure: file stem, caption, its bytes by format, and the numbers that it shows.

    Formats are `png`, `svg` and `pdf`. `data` has one row for each thing drawn; it is written
    beside the figure.
    """

    name: str
    caption: str
    images: dict[str, bytes]
    data: ReportTable | None = None


class Fact(Value, frozen=True, kw_only=True):
    """One line of provenance: its name, and each value with the number of runs that have it."""

    name: str
    values: tuple[tuple[str, int], ...]


class Report(Value, frozen=True, kw_only=True):
    """The contents of a report, in order; `summary` comes first.

    `name` and `conditions` (regime, warm-up, confidence, ...) are the machine-readable form of the
    title and the summary. `partial`: some runs are not finished. `provenance`: where and with which
    software the runs ran; `diagnoses`: why each failed run failed. `kind` and `all_met` are words
    of the page: what it is, and that no check failed. Without `of_runs` it has no provenance, as it
    is about other reports.
    """

    title: str
    summary: tuple[str, ...]
    tables: tuple[ReportTable, ...]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    name: str = ""
    conditions: dict[str, Any] = {}
    partial: bool = False
    provenance: tuple[Fact, ...] = ()
    diagnoses: dict[str, str] = {}
    kind: str = "Scaling report"
    all_met: str = "Each point has a result and meets each gate that was set."
    of_runs: bool = True

    @property
    def answer(self) -> tuple[str, ...]:
        """The lines of the summary that answer; the others say what they rest on."""
        starts = (CAVEATS, MEASURED, NOT_KNOWN)
        return tuple(line for line in self.summary if not line.startswith(starts))

    def said(self, start: str) -> tuple[str, ...]:
        """Return the lines of the summary that begin with `Caveats: `, ..., without that."""
        return tuple(
            line[len(start)].upper() + line[len(start) + 1 :]
            for line in self.summary
            if line.startswith(start)
        )

    def extended(self, tables: Sequence[ReportTable], notes: Sequence[str]) -> Report:
        """Return the report with more tables before that of the runs, and with more notes."""
        keys = [table.key for table in self.tables]
        place = keys.index("runs") if "runs" in keys else len(keys)
        every = (*self.tables[:place], *tables, *self.tables[place:])
        return msgspec.structs.replace(self, tables=every, notes=(*self.notes, *notes))

    @property
    def run_rows(self) -> tuple[dict[str, Any], ...]:
        """Every run that was expected, with its `state` and `problem`."""
        return tuple(row for table in self.tables if table.key == "runs" for row in table.records)


# `error`: the gate itself could not be read.
GateOutcome = Literal["met", "not met", "not decided", "error"]


class GateResult(Value, frozen=True, kw_only=True):
    """The result of one gate at one point, for one run, or for a whole series.

    `reason` is a text with the value, its interval and the limit; `low` and `high` are None if
    there is no interval, `value` is None if there is no number.
    """

    gate: str
    where: str
    outcome: GateOutcome
    reason: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None


Row = Mapping[str, Any]
_WITH_LIMITS = tuple(metric.key for metric in POINT_METRICS if metric.limits == "object")
_RENAMED = {metric.key: metric.json_key for metric in POINT_METRICS if metric.json_key}


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one dict per row; NaN and NA become None, tuples become lists."""
    names = [str(name) for name in frame]
    # Column by column: iteration over the rows of 10,000 runs takes ten times as long.
    columns = [_plain_column(column) for _, column in frame.items()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def for_programs(row: Row) -> dict[str, Any]:
    """Return the row as it is written to files, with each flag as a text `code: detail`."""
    return {**row, "flags": [str(flag) for flag in row.get("flags") or ()]}


def nested(row: Row) -> dict[str, Any]:
    """Return the row with `x`, `x_low`, `x_high` as one `x: {value, low, high}`, or None."""
    limits = {f"{name}{end}" for name in _WITH_LIMITS for end in ("_low", "_high")}
    plain = {name: v for name, v in for_programs(row).items() if name not in limits}
    for name in _WITH_LIMITS:
        if row.get(name) is None:
            continue
        plain[name] = {
            "value": row[name],
            "low": row[f"{name}_low"],
            "high": row[f"{name}_high"],
        }
    renamed = {new: plain.pop(key) for key, new in _RENAMED.items()}
    return plain | renamed


def _plain_column(column: pd.Series[Any]) -> list[Any]:
    values = column.tolist()
    if column.dtype == object:
        values = [_plain(value) for value in values]
    if not column.hasnans:
        return values
    absent = column.isna().tolist()
    return [None if gone else value for value, gone in zip(values, absent, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value.item() if hasattr(value, "item") else value


# What names a point, and the point of a run.
SIZE = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus")


def point_of(row: Row) -> tuple[Any, ...]:
    """Return the key of the point of a run or of a row of the point table."""
    return tuple(row.get(name) for name in ("series", *SIZE))


ABSENT = "--"
# The resolution of clocks is a nanosecond; further digits differ between processors.
DIGITS = 9


def rounded(value: Any) -> Any:
    """Return a float rounded to nine significant digits; any other value unchanged."""
    if not isinstance(value, float) or value.is_integer() or not isfinite(value):
        return value
    return float(f"{value:.{DIGITS}g}")


def significant(value: float | None, digits: int = 4) -> str:
    """Return at least `digits` significant digits, without an exponent for large numbers."""
    if value is None or not isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:.{decimals}f}" if decimals < 10 else f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int | None, factor: float = 1) -> str:
    """Return value x factor with `decimals` decimals, or with four significant digits."""
    if value is None or not isfinite(value * factor):
        return ABSENT
    return significant(value * factor) if decimals is None else f"{value * factor:.{decimals}f}"


def with_limits(
    row: Mapping[str, Any],
    name: str,
    decimals: int | None,
    factor: float = 1,
    *,
    limits: bool = True,
) -> str:
    """Return `3.95 [3.90, 4.01]`; only the value where there is no interval, or without `limits`.

    Without a number of decimals each is written with four significant digits.
    """
    shown, *ends = (
        fixed(row.get(f"{name}{end}"), decimals, factor) for end in ("", "_low", "_high")
    )
    return f"{shown} [{', '.join(ends)}]" if limits and ABSENT not in (shown, *ends) else shown


def whole(value: float | None) -> str:
    """Return a count or a ratio with at most six significant digits."""
    return ABSENT if value is None or not isfinite(value) else f"{value:.6g}"


LEVEL = "95 %"


def level_word(confidence: float) -> str:
    """Return `98.33 %`, with enough digits that a level is never shown as 100 %."""
    digits = max(4, 1 - floor(log10(1 - confidence)))
    return f"{100 * confidence:.{digits}g} %"


def levels_word(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the levels of the intervals of rows, `95 % to 98.33 %`."""
    levels = sorted({row["level"] for row in rows} - {None}) or [CONFIDENCE]
    return " to ".join(dict.fromkeys(map(level_word, (levels[0], levels[-1]))))


def one_line(text: str) -> str:
    """Return the text on one line, each control character as its escape (`\\x1b`)."""
    words = " ".join(text.split())
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


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
K = TypeVar("K")
UNKNOWN = "an unknown number of ranks"


def regimes(points: Sequence[Row]) -> list[str]:
    """Return the known regimes of the series, each once, in their order."""
    return [name for name in dict.fromkeys(row["regime"] for row in points) if name != "unknown"]


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


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group in one pass: there may be a series for each log."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


# Number of points, runs or reasons that a sentence names.
NAMED = 8


def first_of(texts: Iterable[str], between: str = ", ", most: int = NAMED) -> str:
    """Return the first texts, and how many more there are."""
    every = list(texts)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return between.join(every[:most]) + more


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


Marks = list[tuple[Row, str]]
NOT_OK = "some runs are not ok"
MEANING = {
    FlagCode.ONE_RUN: "n=1, so no interval",
    FlagCode.ONE_BASELINE_RUN: "one baseline run, so no interval",
    FlagCode.NO_SPREAD: "all repetitions are equal, so their spread is not known",
    FlagCode.ONE_SESSION: "one session for each size",
    FlagCode.SHORT: "few measured steps",
    FlagCode.SLOW_STEPS: "some steps take much longer (evaluations, checkpoints, a long warm-up?)",
    FlagCode.GATE: "below the gate",
    FlagCode.RANKS: "ranks without steps",
    FlagCode.SUPERLINEAR: "superlinear speedup",
    FlagCode.VARIES: "contradicting values in a run",
    FlagCode.ACCURACY: "accuracy differs from the baseline",
    FlagCode.LOSS: "loss differs from the baseline",
    FlagCode.WHOLE_SECONDS: "times in whole seconds",
    FlagCode.UNMEASURED: "ok runs without a result, not compared",
    FlagCode.NOT_FINITE: "values that are not finite",
    FlagCode.REQUEUED: "runs that were restarted",
    FlagCode.EFFICIENCY: "implausible efficiency",
    FlagCode.CONTRADICTION: "rate, step time and batch contradict one another",
    FlagCode.MEMORY: "more memory than the GPU has",
    FlagCode.MFU: "more operations than the GPU can do",
    FlagCode.UNIT: "the unit of a value may be wrong",
    FlagCode.THROTTLED: "GPUs were throttled",
    FlagCode.TRANSPORT: "the transport differs",
}
# As far apart as values of one series whose unit is doubted.
MOST_TIMES = 200.0
SAID = frozenset({FlagCode.ONE_RUN, FlagCode.ONE_BASELINE_RUN})
_ALIKE = (
    "share no node, and their repetitions are on the same nodes, so that a difference between "
    "nodes looks like one between {}"
)


def run_caveats(
    apart: Sequence[ApartPoints], slow: Sequence[SlowRun], frame: pd.DataFrame
) -> Iterator[str]:
    """Yield that compared points are on other nodes, and which runs are slow."""
    points = plain_rows(frame) if apart or slow else []
    name = names(points)
    if apart:
        shown = (
            f"{name(points[one.point])} on {first_of(one.nodes)}, {name(points[one.other])} on "
            f"{first_of(one.others)}"
            for one in apart
        )
        said = _ALIKE.format("the points")
        yield f"{CAVEATS}points that are compared {said}: {first_of(shown, '; ')}."
    if slow:
        shown = (
            f"{one.run_id} took {one.times:.3g} times as long as the median of the "
            f"{counted(one.runs, 'run')} at {name(points[one.point])}"
            for one in slow
        )
        what = "a run is" if len(slow) == 1 else "runs are"
        yield (
            f"{CAVEATS}{what} slower than the spread explains: {first_of(shown, '; ')}. "
            "Find the cause, or exclude the run: --exclude RUN=REASON."
        )


def sides_apart(
    apart: Sequence[ApartPoints], name: Callable[[Row], str], points: Sequence[Row]
) -> Iterator[str]:
    """Yield the caveat of a comparison whose points share no node; `points` are its rows."""
    if apart:
        shown = (
            f"{name(points[one.point])}: A on {first_of(one.nodes)}, B on {first_of(one.others)}"
            for one in apart
        )
        yield f"{CAVEATS}A and B {_ALIKE.format('A and B')}: {first_of(shown, '; ')}."


def implausible_of_side(points: Sequence[Row]) -> Iterator[str]:
    """Yield the lines on implausible values as parts of a sentence about one of two sides."""
    for line in flag_caveats(points, implausible=True):
        yield line.removeprefix(CAVEATS).removesuffix(".")


def implausible_ratios(points: Sequence[Row]) -> Iterator[tuple[Row, float]]:
    """Yield the points of a comparison whose ratio is too large for a change, and the ratio."""
    for row in points:
        ratio = row["ratio"]
        if ratio is not None and not 1 / MOST_TIMES < ratio < MOST_TIMES:
            yield row, ratio


def flag_caveats(points: Sequence[Row], *, implausible: bool = False) -> Iterator[str]:
    """Yield a line for each kind of implausible value, or of other flag and for runs not ok."""
    kinds: dict[str, Marks] = {}
    for row in points:
        if not implausible and row["not_ok"]:
            found = f"{row['n_ok']} of {row['n_submitted']}: {row['not_ok']}"
            kinds.setdefault(NOT_OK, []).append((row, found))
        for flag in row["flags"]:
            if (flag.code in IMPLAUSIBLE) == implausible:
                detail = "" if flag.code in SAID else flag.detail
                kinds.setdefault(MEANING[flag.code], []).append((row, detail))
    name = names(points)
    for meaning, marks in kinds.items():
        rows = list({id(row): row for row, _ in marks}.values())
        detail = f" ({marks[0][1]})" if marks[0][1] else ""
        if len({about for _, about in marks}) > 1:
            where, detail = first_of((f"{name(row)} ({about})" for row, about in marks), "; "), ""
        elif len(rows) == len(points):
            every = {1: "the only point", 2: "both points"}
            where = every.get(len(rows), f"all {len(rows)} points")
        else:
            where = first_of(map(name, rows))
        yield f"{CAVEATS}{meaning}{detail}: {where}."


class Paper(Value, frozen=True, kw_only=True):
    """How figures are drawn: their width in inches (None: for a screen), with a title or not."""

    width: float | None = None
    title: bool = True


SCREEN = Paper()


class ReportOptions(Value, frozen=True, kw_only=True):
    """Options of a report in addition to the table of points.

    `figures`: draw the figures, or only the main one, in the formats of `images` (svg, png,
    pdf). `wide`: all columns. `allow_mixed`: conditions that may differ within a series.
    `against`: the study or report that is the reference of the regression gate,
    searched with `search`. `details`: include the details of each run. `target`: report the samples
    and the time to reach it. `paper`: the size of the
    figures.
    """

    images: tuple[str, ...] = ("svg", "png")
    paper: Paper = SCREEN
    main_figure_only: bool = False
    wide: bool = False
    figures: bool = False
    details: bool = False
    allow_mixed: tuple[str, ...] = ()
    against: str | None = None
    target: Target | None = None
    search: Search | None = None
