"""Entries of a history -> each metric of each point over time, with the changes of its level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from hpc_train.model.metrics import BASES, BASIS_COLUMNS, POINT_METRICS
from hpc_train.model.track import (
    LEAST_ENTRIES,
    Spot,
    Track,
    TrackEntry,
    TrackPoint,
    TrackValue,
)
from hpc_train.tables.change_points import LEVEL, changes, newest_step
from hpc_train.tables.comparable_series import classes_of
from hpc_train.tables.confidence_intervals import corrected
from hpc_train.tables.group_reductions import levels_of
from hpc_train.tables.matched_points import SIZES
from hpc_train.tables.scaling_regime import ROUNDED

# Beside the speed; of all metrics, these have a meaning at one size and are not derived from it.
TRACKED = ("efficiency", "accuracy")
_BATCH = "global_batch"
_JSON_KEYS = {metric.key: metric.json_key or metric.key for metric in POINT_METRICS}


class _Place(NamedTuple):
    """A point: its sizes are those of SIZES."""

    site: str
    study: str
    series: str
    sizes: tuple[int | None, ...]


def tracks(entries: Sequence[TrackEntry]) -> list[Track]:
    """Return every metric of every point that an entry has, from entries in order of time.

    Only entries that agree in `work` (program, model, data, batch, regime ...) and basis are one
    series, by the rule of the series of a report. A series of several sizes also has a track of
    all of them. The level of each test is corrected for the number of tracks (Bonferroni).
    """
    points = [
        track
        for place, own in _by_point(entries).items()
        for track in _tracks_of(place, own)
        if track.known
    ]
    found = [track for track in _with_all_sizes(points) if track.known]
    searched = sum(len(track.known) >= LEAST_ENTRIES for track in found)
    level = 1 - corrected(1 - LEVEL, searched)
    return [_with_changes(track, level) for track in found]


def _with_changes(track: Track, level: float) -> Track:
    values = [value.value for _, value in track.known]
    # Above 1 is better, as in a comparison.
    oriented = values if track.higher else [1 / value for value in values]
    found = changes(oriented, level)
    return replace(track, changes=tuple(found), newest=newest_step(oriented, found))


def _with_all_sizes(points: Sequence[Track]) -> Iterator[Track]:
    """Yield the tracks, before those of each series of several sizes the one of all sizes."""
    series: dict[tuple[str, str, str], list[Track]] = {}
    for track in points:
        series.setdefault((track.site, track.study, track.series), []).append(track)
    for own in series.values():
        newest = max(track.spots[-1].entry for track in own)
        speeds = [track for track in own if track.speed and track.spots[-1].entry == newest]
        if len(speeds) > 1 and len({track.basis for track in speeds}) == 1:
            yield _all_sizes(speeds)
        yield from own


def _all_sizes(speeds: Sequence[Track]) -> Track:
    """Return the geometric mean of the speeds, over the entries that have all of them.

    What changes every size, such as a driver, is seen sooner in it: the noise of the sizes is
    averaged.
    """
    by_entry: dict[int, list[tuple[Spot, TrackValue]]] = {}
    for track in speeds:
        for spot, value in track.known:
            by_entry.setdefault(spot.entry, []).append((spot, value))
    spots = tuple(
        Spot(
            entry=number,
            value=TrackValue(value=float(np.exp(np.mean(np.log([v.value for _, v in own]))))),
            n_ok=sum(spot.n_ok for spot, _ in own),
            n_submitted=sum(spot.n_submitted for spot, _ in own),
            not_ok="",
        )
        for number, own in sorted(by_entry.items())
        if len(own) == len(speeds)
    )
    sizes: dict[str, int | None] = dict.fromkeys(SIZES)
    return replace(speeds[0], sizes=sizes, work="", spots=spots, all_sizes=len(speeds))


def _by_point(entries: Sequence[TrackEntry]) -> dict[_Place, list[tuple[int, TrackPoint]]]:
    found: dict[_Place, list[tuple[int, TrackPoint]]] = {}
    for number, entry in enumerate(entries):
        for point in entry.points:
            sizes = tuple(getattr(point, name) for name in SIZES)
            place = _Place(entry.site, entry.study, point.series, sizes)
            found.setdefault(place, []).append((number, point))
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def _order(place: _Place) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return place[:3], tuple(size or 0 for size in place.sizes)


def _tracks_of(place: _Place, own: Sequence[tuple[int, TrackPoint]]) -> Iterator[Track]:
    works = _works([point for _, point in own])
    classes = classes_of(works)
    for one in dict.fromkeys(classes):
        members = [pair for pair, number in zip(own, classes, strict=True) if number == one]
        words = _distinct(one, classes, works)
        basis = next((p.basis for _, p in members if p.n_ok), members[0][1].basis)
        # A basis that only another version knows has no speed.
        speed = (_JSON_KEYS[BASIS_COLUMNS[basis]],) if basis in BASES else ()
        for metric in (*speed, *TRACKED):
            yield Track(
                site=place.site,
                study=place.study,
                series=place.series,
                sizes=dict(zip(SIZES, place.sizes, strict=True)),
                basis=basis,
                work=words,
                metric=metric,
                speed=metric in speed,
                higher=metric not in speed or BASES[basis].is_rate,
                spots=tuple(_spot(number, point, metric) for number, point in members),
            )


def _works(points: Sequence[TrackPoint]) -> list[dict[str, str]]:
    """Return the facts that must match; batches within a percent are equal, as in a report."""
    batches = np.array([_number(point.work.get(_BATCH)) for point in points], dtype=np.float64)
    levels = levels_of(batches, ROUNDED)
    first = {level: f"{batches[levels == level][0]:g}" for level in set(levels.tolist()) - {-1}}
    works = []
    for point, level in zip(points, levels.tolist(), strict=True):
        own = {name: text for name, text in point.work.items() if name != _BATCH}
        # A point without a result has no basis of its own.
        own |= {"basis": point.basis} if point.n_ok else {}
        works.append(own | ({_BATCH: first[level]} if level >= 0 else {}))
    return works


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def _distinct(one: int, classes: Sequence[int], works: Sequence[Mapping[str, str]]) -> str:
    """Return the facts in which a class differs from another one of the same point."""
    own: dict[str, str] = {}
    others: list[Mapping[str, str]] = []
    for work, number in zip(works, classes, strict=True):
        if number == one:
            own |= work
        else:
            others.append(work)
    return ", ".join(
        f"{name}={text}"
        for name, text in own.items()
        if any(other.get(name, text) != text for other in others)
    )


def _spot(number: int, point: TrackPoint, metric: str) -> Spot:
    value = point.values.get(metric)
    # Only positive numbers have a ratio.
    known = value if value is not None and value.value > 0 and point.n_ok else None
    return Spot(
        entry=number,
        value=known,
        n_ok=point.n_ok,
        n_submitted=point.n_submitted,
        not_ok=point.not_ok,
    )
