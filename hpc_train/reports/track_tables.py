"""Tracks of a history -> its tables: levels, changes, and every point over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hpc_train.model.report import Cell, Column, GateResult, ReportTable
from hpc_train.model.track import Track
from hpc_train.reports.track_names import (
    TrackInput,
    heading,
    metric_name,
    moment,
    point_names,
    ratio_text,
    runs_text,
    value_text,
)
from hpc_train.reports.value_format import ABSENT, significant

# Entries shown of each point; CSV and JSON have all.
SHOWN = 15
_WORDS = {"not met": "worse", "met": "not worse", "not decided": "not decided"}


def levels_table(found: TrackInput, verdicts: Sequence[GateResult]) -> ReportTable:
    """Return a row per track: its newest level, the one before, the step and the verdict."""
    columns = _columns(
        ("point", "point", "left"), ("metric", "metric", "left"), ("values", "values", "right"),
        ("before", "level\nbefore", "right"), ("now", "level\nnow", "right"),
        ("step", "now/before\n[95 %]", "right"), ("since", "since", "left"),
        ("verdict", "verdict", "left"),
    )  # fmt: skip
    records = [
        _level(track, name, found, verdict)
        for track, name, verdict in zip(found.tracks, point_names(found), verdicts, strict=True)
    ]
    return ReportTable(
        title="Levels",
        columns=columns,
        rows=tuple(_cells(columns, row, _shown_level(row)) for row in records),
        key="rows",
        records=tuple(records),
    )


def _level(track: Track, name: str, found: TrackInput, verdict: GateResult) -> dict[str, Any]:
    (before, now), change = track.newest_levels(), track.newest
    start = found.entries[track.known[change.at if change else 0][0].entry].started
    return {
        **_place(track, name),
        "values": len(track.known),
        "before": _mean(before) if before else None,
        "now": _mean(now),
        "step": {"value": change.ratio, "low": change.low, "high": change.high} if change else None,
        "since": start,
        "verdict": _WORDS.get(verdict.outcome, verdict.outcome),
        "why": verdict.reason,
    }


def _shown_level(row: dict[str, Any]) -> dict[str, str]:
    step = row["step"]
    return {
        "before": significant(row["before"]),
        "now": significant(row["now"]),
        "step": ratio_text(*step.values()) if step else ABSENT,
        "since": moment(row["since"]),
    }


def _place(track: Track, name: str) -> dict[str, Any]:
    where = {"site": track.site, "study": track.study, "series": track.series, **track.sizes}
    return {
        **where, "work": track.work, "basis": track.basis, "point": name,
        "metric": metric_name(track), "unit": heading(track),
    }  # fmt: skip


def _mean(level: Sequence[Any]) -> float:
    """Return the geometric mean, which has the ratio of the step."""
    from math import exp, log

    return exp(sum(log(value.value) for _, value in level) / len(level))


def changes_table(found: TrackInput) -> ReportTable:
    """Return a row per change of level, the newest first, with the conditions that changed."""
    columns = _columns(
        ("since", "since", "left"), ("point", "point", "left"), ("metric", "metric", "left"),
        ("step", "new/old\n[95 %]", "right"), ("n", "values\nold, new", "right"),
        ("changed", "changed at that time", "left"),
    )  # fmt: skip
    records = sorted(_changes(found), key=lambda row: str(row["since"]), reverse=True)
    return ReportTable(
        title="Changes of level",
        columns=columns,
        rows=tuple(_cells(columns, row, _shown_change(row)) for row in records),
        key="changes",
        records=tuple(records),
    )


def _changes(found: TrackInput) -> Iterator[dict[str, Any]]:
    for i, (track, name) in enumerate(zip(found.tracks, point_names(found), strict=True)):
        levels = track.levels()
        for k, change in enumerate(track.changes):
            yield {
                **_place(track, name),
                "since": found.entries[levels[k + 1][0][0].entry].started,
                "step": {"value": change.ratio, "low": change.low, "high": change.high},
                "p": change.p,
                "n_old": len(levels[k]),
                "n_new": len(levels[k + 1]),
                "changed": [f"{n}: {a} → {b}" for n, a, b in found.changed.get((i, k), ())],
            }


def _shown_change(row: dict[str, Any]) -> dict[str, str]:
    return {
        "since": moment(row["since"]),
        "step": ratio_text(*row["step"].values()),
        "n": f"{row['n_old']}, {row['n_new']}",
        "changed": "; ".join(row["changed"]) or "no recorded condition",
    }


def history_tables(found: TrackInput) -> Iterator[ReportTable]:
    """Yield a table per point: its newest entries, the newest last."""
    points: dict[str, list[Track]] = {}
    for track, name in zip(found.tracks, point_names(found), strict=True):
        points.setdefault(name, []).append(track)
    for name, own in points.items():
        columns = _columns(
            ("started", "started [UTC]", "left"), ("runs", "runs\nok", "right"),
            *((t.metric, f"{heading(t)}\n[95 %]", "right") for t in own),
            ("step", "change of level", "left"),
        )  # fmt: skip
        numbers = sorted({spot.entry for track in own for spot in track.spots})
        yield ReportTable(
            title=name,
            columns=columns,
            rows=tuple(_cells(columns, {}, _shown_entry(found, own, n)) for n in numbers[-SHOWN:]),
        )


def _shown_entry(found: TrackInput, own: Sequence[Track], number: int) -> dict[str, str]:
    shown, steps = {"started": moment(found.entries[number].started)}, []
    for track in own:
        spot = next((spot for spot in track.spots if spot.entry == number), None)
        if spot is None:
            continue
        shown |= {"runs": runs_text(spot.n_ok, spot.n_submitted)}
        shown[track.metric] = value_text(spot.value)
        for change, level in zip(track.changes, track.levels()[1:], strict=True):
            if level[0][0].entry == number:
                ratio = ratio_text(change.ratio, change.low, change.high)
                steps.append(f"{metric_name(track)} {ratio}")
    return {**shown, "step": "; ".join(steps) or " "}


def values_table(found: TrackInput) -> ReportTable:
    """Return a record per value of each track: the history for programs."""
    records = [
        {
            "started": found.entries[spot.entry].started,
            **_place(track, name),
            "value": None if spot.value is None else spot.value.value,
            "low": None if spot.value is None else spot.value.low,
            "high": None if spot.value is None else spot.value.high,
            "n_ok": spot.n_ok, "n_submitted": spot.n_submitted, "not_ok": spot.not_ok,
            "level": sum(level[0][0].entry <= spot.entry for level in track.levels()),
            "file": found.files[spot.entry],
        }
        for track, name in zip(found.tracks, point_names(found), strict=True)
        for spot in track.spots
    ]  # fmt: skip
    return ReportTable(title="Values", columns=(), rows=(), key="values", records=tuple(records))


def _columns(*columns: tuple[str, str, Any]) -> tuple[Column, ...]:
    return tuple(Column(key=key, heading=head, align=align) for key, head, align in columns)


def _cells(
    columns: Sequence[Column], row: dict[str, Any], shown: dict[str, str]
) -> tuple[Cell, ...]:
    return tuple(
        Cell(text=shown.get(c.key) or str(row.get(c.key) or ABSENT), value=row.get(c.key))
        for c in columns
    )
