"""Rows of a comparison of series -> its table, and the fastest series of each size in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hpc_train.model.metrics import BASES
from hpc_train.model.report import Cell, Column, ReportTable
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import series_heading, short_series, sizes
from hpc_train.reports.size_unit import size_unit
from hpc_train.reports.study_tables import follow_from_unit
from hpc_train.reports.value_format import ABSENT, fixed, level_word, significant, whole

FASTER, NO_RESULT, ALONE = "faster", "no result", "no other series at this size"
ONE_RUN, NO_SPREAD = "n=1: no verdict", "no spread: no verdict"
SIGNIFICANT = {
    FASTER: "yes",
    "no difference seen at this n": "no",
    ONE_RUN: "n=1",
    NO_SPREAD: "no spread",
}
SIZES = {"nodes": "nodes", "gpus_per_node": "gpus/\nnode", "tasks_per_node": "tasks/\nnode",
         "gpus": "gpus", "ranks": "ranks"}  # fmt: skip
MOST_NAMED = 6
METHOD = (
    "Comparison at each size: ratio of the fastest series to another one, of geometric means over "
    "the runs, with Welch's {alone} interval of this ratio alone. Whether it is significant is "
    "decided at {level}, so that the answer can be no beside an interval above 1 (Bonferroni: "
    "{pairs} pairs of series are compared, because the fastest is known only from the data). "
    "Series are compared "
    "if they agree in model, data and batch, as far as these are recorded."
)


def fastest_table(rows: Sequence[Row], points: Sequence[Row]) -> ReportTable:
    """Return a row for each size and each series that is compared with the fastest one there."""
    columns = _columns(rows, points)
    return ReportTable(
        title="Comparison at each size",
        columns=tuple(column for column, _ in columns),
        rows=tuple(
            tuple(Cell(text=text(row), value=row.get(column.key)) for column, text in columns)
            for row in rows
        ),
        key="comparison",
        records=tuple(map(_record, rows)),
    )


def _columns(
    rows: Sequence[Row], points: Sequence[Row]
) -> list[tuple[Column, Callable[[Row], str]]]:
    axis = series_heading(points)
    unit = _unit(rows)
    confidence = float(points[0]["confidence"]) if points else 0.95
    return [
        *(
            (Column(key=key, heading=heading), _count(key))
            for key, heading in SIZES.items()
            if _is_needed(key, points)
        ),
        (
            Column(key="fastest", heading="fastest\nseries", align="left"),
            lambda row: short_series(row["fastest"], axis),
        ),
        (
            Column(key="value", heading=f"its\n{unit}", drop=2),
            lambda row: significant(row["value"]),
        ),
        (
            Column(key="series", heading="compared\nwith", align="left"),
            lambda row: short_series(row["series"], axis) if row["series"] else ABSENT,
        ),
        (
            Column(key="other_value", heading=f"its\n{unit}", drop=1),
            lambda row: significant(row["other_value"]),
        ),
        (
            Column(key="ratio", heading=f"times as fast\n[{level_word(confidence)}]"),
            lambda row: ratio_words(row, 3),
        ),
        (Column(key="verdict", heading="significant", align="left"), _significant),
    ]


def fastest_notes(rows: Sequence[Row], confidence: float) -> Iterator[str]:
    """Yield how the comparison at each size was computed."""
    pairs = next((row["comparisons"] for row in rows), 0)
    if pairs:
        level = level_word(1 - (1 - confidence) / pairs)
        yield METHOD.format(alone=level_word(confidence), level=level, pairs=pairs)


def fastest_sentences(rows: Sequence[Row], points: Sequence[Row]) -> Iterator[str]:
    """Yield for each series that is the fastest at some size: where, and by how much."""
    axis, named = series_heading(points), sizes(points)
    groups: dict[tuple[Any, str], list[list[Row]]] = {}
    for own in _by_size(rows):
        groups.setdefault((own[0]["group"], own[0]["fastest"]), []).append(own)
    several = len({row["group"] for row in rows}) > 1
    for (group, fastest), places in groups.items():
        among = _among(rows, group, axis) if several else ""
        where = _places([named({**own[0], "series": fastest}) for own in places])
        by = _by_how_much(places, axis, named)
        yield f"Fastest{among} at {where}: {short_series(fastest, axis)}{by}."


def ratio_words(row: Row, decimals: int = 2) -> str:
    """Return `1.32 [1.25, 1.40]`, or `--`."""
    shown = fixed(row["ratio"], decimals)
    ends = [fixed(row[f"ratio_{end}"], decimals) for end in ("low", "high")]
    return shown if ABSENT in (shown, *ends) else f"{shown} [{', '.join(ends)}]"


def _by_how_much(places: Sequence[Sequence[Row]], axis: str, named: Callable[[Row], str]) -> str:
    """Return the ratio to the second fastest series at the largest size, and where it is open."""
    compared = [own[0] for own in places if own[0]["ratio"] is not None]
    if not compared:
        return " (no other series has a result there)"
    last = compared[-1]
    second = short_series(last["series"], axis)
    where = f" at {named({**last, 'series': last['fastest']})}" if len(places) > 1 else ""
    text = f", {ratio_words(last)} times as fast as {second}{where}"
    if same := BASES[last["basis"]].same:
        text += f", assuming the same {same}"
    unsure: dict[str, list[Row]] = {}
    for row in compared:
        if row["verdict"] != FASTER:
            unsure.setdefault(_doubt(row), []).append(row)
    for doubt, rows in unsure.items():
        sized = _places([named({**row, "series": row["fastest"]}) for row in rows])
        text += f"; {doubt}" + f" at {sized}" * (len(rows) < len(compared))
    return text


def _doubt(row: Row) -> str:
    """Return why the fastest series of a size is not called faster than the second."""
    if row["verdict"] == NO_SPREAD:
        return "repetitions without spread: no test of the difference"
    if row["verdict"] != ONE_RUN:
        return "the difference is not significant"
    each = row["n"] == row["other_n"]
    return f"{'one run each' if each else 'one of the two has one run'}: no test of the difference"


def _among(rows: Sequence[Row], group: int, axis: str) -> str:
    names = dict.fromkeys(
        short_series(name, axis)
        for row in rows
        if row["group"] == group
        for name in (row["fastest"], row["series"])
        if name
    )
    shown = list(names)[:MOST_NAMED]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f" of {', '.join(shown)}{more}"


def _places(named: Sequence[str]) -> str:
    """Return `1, 2 and 4 GPUs`, `1 GPU to 512 GPUs (10 sizes)`."""
    if len(named) > MOST_NAMED:
        return f"{len(named)} sizes from {named[0]} to {named[-1]}"
    if len(named) == 1:
        return named[0]
    words = [name.split(" ") for name in named]
    if all(len(word) == 2 and word[1].rstrip("s") == words[-1][1].rstrip("s") for word in words):
        numbers = [word[0] for word in words]
        return f"{', '.join(numbers[:-1])} and {numbers[-1]} {words[-1][1]}"
    return f"{'; '.join(named[:-1])} and {named[-1]}"


def _by_size(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each size: neighbours with the same fastest point."""
    found: list[list[Row]] = []
    last: tuple[Any, ...] | None = None
    for row in rows:
        key = tuple(row[name] for name in (*SIZES, "group", "fastest", "value"))
        if key != last:
            found.append([])
        found[-1].append(row)
        last = key
    return found


def _unit(rows: Sequence[Row]) -> str:
    units = {BASES[row["basis"]].in_heading for row in rows}
    return units.pop() if len(units) == 1 else "result"


def _is_needed(key: str, points: Sequence[Row]) -> bool:
    """Whether it is the unit of the report, or does not follow from that."""
    unit = size_unit(points).key
    if key in ("gpus", "ranks") or follow_from_unit(points):
        return key == unit
    return len({row[key] for row in points}) > 1


def _count(key: str) -> Callable[[Row], str]:
    return lambda row: whole(row[key])


def _significant(row: Row) -> str:
    verdict = str(row["verdict"])
    if verdict == NO_RESULT and row["not_ok"]:
        return f"{verdict} ({row['not_ok']})"
    return SIGNIFICANT.get(verdict, verdict)


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row for JSON: each ratio with its limits as one value."""
    limits = {f"{name}_{end}" for name in ("ratio", "corrected") for end in ("low", "high")}
    plain = {name: value for name, value in row.items() if name not in limits}
    for name in ("ratio", "corrected"):
        ends = {end: row[f"{name}_{end}"] for end in ("low", "high")}
        plain[name] = None if row["ratio"] is None else {"value": row["ratio"], **ends}
    return plain
