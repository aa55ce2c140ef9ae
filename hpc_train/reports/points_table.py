"""Plain rows -> the table of points, that of the comparison of series at each size, and of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hpc_train.base.metrics import BASES, BASIS_COLUMNS, Metric, TextColumn, in_text_order
from hpc_train.reports.report import OK, Column, ReportTable, Shown, table_of, words_of
from hpc_train.reports.words import (
    ABSENT,
    LEVEL,
    Row,
    counted,
    first_of,
    fixed,
    for_programs,
    has_own_baselines,
    levels_word,
    names,
    nested,
    one_size,
    plain_rows,
    series_heading,
    short_series,
    significant,
    size_unit,
    whole,
    with_limits,
)

if TYPE_CHECKING:
    import pandas as pd

SIZE_COLUMNS = {
    "nodes": "nodes",
    "gpus_per_node": "gpus/\nnode",
    "tasks_per_node": "tasks/\nnode",
    "gpus": "gpus",
    "ranks": "ranks",
}
SIZES = (
    "series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "global_batch",
    "tokens_per_step", "gpus",
)  # fmt: skip
SIZE_WORDS = {
    "nodes": ("node", ""),
    "gpus_per_node": ("GPU", " per node"),
    "tasks_per_node": ("task", " per node"),
    "cpus_per_task": ("CPU", " per task"),
    "global_batch": ("sample", " in a global batch"),
    "tokens_per_step": ("token", " in a step"),
}
RATIOS = ("speedup", "ideal", "efficiency")
# Columns that are dropped first if the table is too wide, unless speedup is computed from them.
LESS = (
    "nodes", "time_to_train_s", "epoch_time_s", "step_time_s", "ideal",
    "tokens_per_second", "samples_per_second", "accuracy",
)  # fmt: skip
# Columns that may be empty.
COMPLETE_WITHOUT = frozenset({"flags", "transport", "series"})
COMPARED = frozenset({"speedup", "ideal", "efficiency", "doubling", "karp_flatt"})
FASTER, NO_RESULT = "faster", "no result"
ONE_RUN, NO_SPREAD = "n=1: no verdict", "no spread: no verdict"
SIGNIFICANT = {
    FASTER: "yes",
    "no difference seen at this n": "no",
    ONE_RUN: "n=1",
    NO_SPREAD: "no spread",
}
METHOD = (
    "Comparison at each size: ratio of the fastest series to another one, of geometric means over "
    "the runs, with Welch's interval at the level at which its row is decided, {levels} (Holm: "
    "{pairs} pairs of series are compared, because the fastest is known only from the data, and "
    "fewer after each decision; all decisions together hold at {confidence}). Series are compared "
    "if they agree in model, data and batch, as far as these are recorded."
)


def points_table(points: Sequence[Row], *, wide: bool = False) -> ReportTable:
    """Return the table of points, without constant columns.

    Where it is too wide, columns that speedup is not computed from are dropped; a `wide` table
    keeps every column that has a value.
    """
    every = ((one, [text(row) for row in points]) for one, text in _columns(points, wide))
    shown = [(one, cells) for one, cells in every if _is_needed(one.key, cells, points, wide=wide)]
    needed = {BASIS_COLUMNS[row["basis"]] for row in points if not BASES[row["basis"]].is_rate}
    needed |= set() if follow_from_unit(points) else {"nodes"}
    order = {key: place for place, key in enumerate(LESS, start=1) if key not in needed}
    return ReportTable(
        title="Points",
        columns=tuple(replace(one, drop=0 if wide else order.get(one.key, 0)) for one, _ in shown),
        rows=tuple(zip(*(cells for _, cells in shown), strict=True)),
        key="rows",
        records=tuple(map(nested, points)),
    )


def _columns(points: Sequence[Row], wide: bool) -> list[Shown]:
    """Return the columns that a reader needs, or every one, in order of importance."""
    words = {
        "level": f"[{LEVEL}]",
        "own": "own-series\n" if has_own_baselines(points) else "",
        "items": " or ".join(dict.fromkeys(BASES[row["basis"]].counted for row in points)),
    }

    def of_metric(metric: Metric, how: TextColumn) -> Shown:
        heading = (how.wide_heading if wide else "") or how.heading
        column = Column(metric.key, heading.format(**words))
        if metric.key == "accuracy":
            return column, _accuracy
        if how.whole:
            return column, lambda row: whole(row.get(metric.key))
        limits = "{level}" in heading
        return column, lambda row: with_limits(
            row, metric.key, how.decimals, how.factor, limits=limits
        )

    batch, *others = (
        of_metric(one, one.text)
        for one in in_text_order()
        if one.text and (wide or one.text.compact)
    )
    axis = series_heading(points)
    regime: Shown = (Column("regime", "regime", "left"), lambda row: row["regime"] or ABSENT)
    per_rank: Shown = (Column("micro_batch", "batch/\nrank"), _per_rank)
    return [
        (Column("series", axis or "series", "left"), lambda row: short_series(row["series"], axis)),
        *([regime] if wide else []),
        *size_columns(SIZE_COLUMNS),
        batch,
        *([per_rank] if wide else []),
        (Column("n_ok", "runs\nok"), lambda row: f"{row['n_ok']}/{row['n_submitted']}"),
        *others,
        (Column("transport", "transport", "left"), lambda row: row.get("transport") or ABSENT),
        (Column("flags", "flags", "left"), _flags),
    ]


def size_columns(keys: Iterable[str]) -> list[Shown]:
    """Return columns of sizes."""

    def shown(key: str) -> Shown:
        return Column(key, SIZE_COLUMNS[key]), lambda row: whole(row.get(key))

    return list(map(shown, keys))


def _per_rank(row: Row) -> str:
    known = row["global_batch"] is not None and row["ranks"]
    return whole(row["global_batch"] / row["ranks"]) if known else ABSENT


def _accuracy(row: Row) -> str:
    change, shown = row["accuracy_change_pp"], fixed(row["accuracy"], 1, 100)
    if row["accuracy"] is None or change is None or row["is_baseline"]:
        return shown
    # No -0.0.
    return f"{shown} ({round(change, 1) + 0.0:+.1f})"


def _flags(row: Row) -> str:
    codes = dict.fromkeys(flag.code.value for flag in row["flags"])
    return ", ".join([*codes, *([row["not_ok"]] if row["not_ok"] else [])]) or ABSENT


def runs_table(runs: pd.DataFrame) -> ReportTable:
    """Return the table of the runs that are not ok; `records` holds every run."""
    records = tuple(map(for_programs, plain_rows(runs)))
    failed = [row for row in records if row["state"] != OK]
    columns = words_of({"run_id": "run", "state": "state", "problem": "problem"}, {"problem"})
    return table_of("Runs without a result", "runs", columns, failed, records)


def constants(points: Sequence[Row]) -> str:
    """Return `1 node, 4 tasks per node` for the sizes that are constant."""
    said = []
    for name, (word, after) in SIZE_WORDS.items():
        # A value that a point with a result did not record may differ.
        values = {row[name] for row in points if row["n_ok"] or row[name] is not None}
        if len(values) == 1 and (value := values.pop()) is not None:
            said.append(f"{counted(value, word)}{after}" if value else f"no {word}s")
    return ", ".join(said)


def _is_needed(key: str, cells: Sequence[str], points: Sequence[Row], *, wide: bool) -> bool:
    """Whether a column is not constant, or has a value that is shown nowhere else."""
    if key == "n_ok":
        return True
    if key in RATIOS:
        compared = any(row["speedup"] is not None and not row["is_baseline"] for row in points)
        return compared or not one_size(points)
    values = set(cells)
    if key == "ranks" or (key in ("nodes", "gpus") and not wide):
        return len(values) > 1 and (wide or _is_needed_size(key, points))
    known = values - {ABSENT}
    if key not in SIZES or wide:
        return bool(known)
    silent = any(row["n_ok"] and cell == ABSENT for row, cell in zip(points, cells, strict=True))
    new = not key.endswith("_per_node") or _is_needed_size(key, points)
    return new and (len(known) > 1 or bool(known and silent))


def _is_needed_size(key: str, points: Sequence[Row]) -> bool:
    """Whether it is the unit of the report, or not the same number as that in each row."""
    unit = size_unit(points).key
    new = any(row[key] != row[unit] for row in points)
    if key == "ranks":
        others = ("nodes", "gpus_per_node", "tasks_per_node")
        new = new and not any(len({row[name] for row in points}) > 1 for name in others)
    return key == unit or (new and key != "gpus")


def follow_from_unit(points: Sequence[Row]) -> bool:
    """Whether the nodes follow from the unit: `constants` says how many there are on a node."""
    unit = size_unit(points).key
    ratios = {row[unit] / row["nodes"] for row in points if row["nodes"] and row[unit]}
    return len(ratios) == 1 and all(row["nodes"] and row[unit] for row in points)


def absent_notes(table: ReportTable, points: Sequence[Row]) -> Iterator[str]:
    """Yield a note per reason with the rows that have `--`."""
    reasons: dict[str, list[str]] = {}
    name = names(points)
    for row, cells in zip(points, table.rows, strict=True):
        empty = {
            column.key: column.heading.replace("\n", " ").partition(" [")[0]
            for column, cell in zip(table.columns, cells, strict=True)
            if cell == ABSENT and column.key not in COMPLETE_WITHOUT
        }
        for reason in _reasons(row, empty) if empty else ():
            reasons.setdefault(reason, []).append(name(row))
    for reason, rows in reasons.items():
        where = "every point" if len(rows) == len(points) > 1 else first_of(rows)
        yield f"{ABSENT}: {where}: {reason}."


def _reasons(row: Row, empty: Mapping[str, str]) -> Iterator[str]:
    if not row["n_ok"]:
        yield f"no run with a result ({row['not_ok']})"
        return
    if COMPARED & empty.keys() and row["note"]:
        yield str(row["note"])
    later = {"doubling", "karp_flatt"} & empty.keys()
    if later and not row["note"] and not row["is_baseline"]:
        yield "doubling needs the point of half the size, Karp-Flatt a point above the baseline"
    other = [name for key, name in empty.items() if key not in COMPARED]
    if other:
        yield f"not recorded: {', '.join(other)}"


def fastest_table(rows: Sequence[Row], points: Sequence[Row]) -> ReportTable:
    """Return a row for each size and each series that is compared with the fastest one there."""
    axis, unit = series_heading(points), size_unit(points).key
    headings = {BASES[row["basis"]].in_heading for row in rows}
    result = headings.pop() if len(headings) == 1 else "result"
    level = levels_word(rows)
    alone = follow_from_unit(points)

    def differs(key: str) -> bool:
        """Whether it is the unit of the report, or does not follow from that."""
        is_unit = key == unit
        return is_unit if key in ("gpus", "ranks") or alone else len({p[key] for p in points}) > 1

    columns: list[Shown] = [
        *size_columns(filter(differs, SIZE_COLUMNS)),
        (
            Column("fastest", "fastest\nseries", "left"),
            lambda row: short_series(row["fastest"], axis),
        ),
        (Column("value", f"its\n{result}", drop=2), lambda row: significant(row["value"])),
        (
            Column("series", "compared\nwith", "left"),
            lambda row: short_series(row["series"], axis) if row["series"] else ABSENT,
        ),
        (
            Column("other_value", f"its\n{result}", drop=1),
            lambda row: significant(row["other_value"]),
        ),
        (Column("ratio", f"times as fast\n[{level}]"), lambda row: with_limits(row, "ratio", 3)),
        (Column("verdict", "significant", "left"), _significant),
    ]
    records = tuple(map(ratio_record, rows))
    return table_of("Comparison at each size", "comparison", columns, rows, records)


def _significant(row: Row) -> str:
    verdict = str(row["verdict"])
    if verdict == NO_RESULT and row["not_ok"]:
        return f"{verdict} ({row['not_ok']})"
    return SIGNIFICANT.get(verdict, verdict)


def ratio_record(row: Row) -> dict[str, Any]:
    """Return the row for JSON: the ratio with its limits as one value."""
    plain = {k: v for k, v in row.items() if k not in ("ratio_low", "ratio_high")}
    ends = {end: row[f"ratio_{end}"] for end in ("low", "high")}
    return plain | {"ratio": None if row["ratio"] is None else {"value": row["ratio"], **ends}}


def fastest_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how the comparison at each size was computed."""
    pairs = next((row["comparisons"] for row in rows), 0)
    if pairs:
        yield METHOD.format(levels=levels_word(rows), confidence=LEVEL, pairs=pairs)
