"""Entries of a history -> each metric of each point over time, with the changes of its level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from hpc_train.model.metrics import BASES, BASIS_COLUMNS, POINT_METRICS
from hpc_train.model.track import LEAST_ENTRIES, Spot, Track, TrackEntry, TrackPoint
from hpc_train.tables.change_points import LEVEL, changes
from hpc_train.tables.comparable_series import classes_of
from hpc_train.tables.comparison import SIZES
from hpc_train.tables.confidence_intervals import corrected
from hpc_train.tables.group_reductions import levels_of
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
    series, by the rule of the series of a report. The level of each test is corrected for the
    number of tracks (Bonferroni).
    """
    found = [
        track
        for place, own in _by_point(entries).items()
        for track in _tracks_of(place, own)
        if track.known
    ]
    searched = sum(len(track.known) >= LEAST_ENTRIES for track in found)
    level = 1 - corrected(1 - LEVEL, searched)
    return [replace(track, changes=tuple(changes(_goodness(track), level))) for track in found]


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


def _goodness(track: Track) -> list[float]:
    """Return the values, those of which less is better as their inverse."""
    values = [value.value for _, value in track.known]
    return values if track.higher else [1 / value for value in values]
