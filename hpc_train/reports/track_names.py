"""Tracks of a history -> the names of their points, metrics and moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hpc_train.model.metrics import BASES
from hpc_train.model.study import ALONE
from hpc_train.model.track import Track, TrackEntry, TrackValue
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import sizes, under
from hpc_train.reports.value_format import ABSENT, fixed, significant

SPEED = "speed"
# Metric and number of the change in its track -> name, old and new values of conditions.
Changed = Mapping[tuple[int, int], Sequence[tuple[str, str, str]]]


class TrackInput(NamedTuple):
    """Data of a report on a history.

    `files` are the names of the entries' files; `changed` are the conditions that differ between
    all entries of two levels, by number of track and of change. `threshold`: a smaller loss is not
    reported. `notes` are about entries that are not used.
    """

    title: str
    entries: Sequence[TrackEntry]
    files: Sequence[str]
    tracks: Sequence[Track]
    changed: Changed
    threshold: float
    notes: tuple[str, ...] = ()


def point_row(track: Track) -> Row:
    """Return the point of a track as a row of a report has it."""
    nodes, each = track.sizes["nodes"], track.sizes["gpus_per_node"]
    gpus = nodes * each if nodes is not None and each is not None else None
    series = track.series
    if track.work:
        series = track.work if series == ALONE else f"{series} ({track.work})"
    return {**track.sizes, "gpus": gpus, "series": series}


def point_names(found: TrackInput) -> list[str]:
    """Return the name of the point of each track: site and study only if there are several."""
    homes = {(track.site, track.study) for track in found.tracks}
    # Per study, since the unit of sizes is that of all its points.
    named: dict[tuple[str, str], Callable[[Row], str]] = {}
    for home in homes:
        own = [t for t in found.tracks if (t.site, t.study) == home and not t.all_sizes]
        alike = {(*t.sizes.values(), t.series, t.work): point_row(t) for t in own}
        named[home] = sizes(list(alike.values()))
    return [_name(track, named[track.site, track.study], homes) for track in found.tracks]


def _name(track: Track, size: Callable[[Row], str], homes: set[tuple[str, str]]) -> str:
    row = point_row(track)
    where = f"all {track.all_sizes} sizes" if track.all_sizes else size(row)
    name = f"{where}{under(row['series'])}"
    parts = [track.study] if len({study for _, study in homes}) > 1 else []
    parts += [track.site] if len({site for site, _ in homes}) > 1 else []
    return f"{' on '.join(parts)}: {name}" if parts else name


def metric_name(track: Track) -> str:
    """Return `speed`, `efficiency`, `accuracy`."""
    return SPEED if track.speed else track.metric


def heading(track: Track) -> str:
    """Return the heading of a column of values: `samples/s`, `efficiency`."""
    return BASES[track.basis].in_heading if track.speed else track.metric


def value_text(value: TrackValue | None) -> str:
    """Return `1876 [1487, 2543]`, or without an interval if it has none."""
    if value is None:
        return ABSENT
    if value.low is None or value.high is None:
        return significant(value.value)
    return f"{significant(value.value)} [{significant(value.low)}, {significant(value.high)}]"


def ratio_text(ratio: float, low: float, high: float) -> str:
    """Return `0.934 [0.926, 0.942]`."""
    return f"{fixed(ratio, 3)} [{fixed(low, 3)}, {fixed(high, 3)}]"


def moment(started: str) -> str:
    """Return `2026-11-21 20:45` of `2026-11-21T20:45:54Z`."""
    return started.replace("T", " ")[:16]


def runs_text(n_ok: int, n_submitted: int) -> str:
    """Return `3`, or `2/3` if a run has no result."""
    return f"{n_ok}" if n_ok == n_submitted else f"{n_ok}/{n_submitted}"
