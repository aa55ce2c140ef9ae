"""Entries of a history, made by a law instead of by runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from hpc_train.model.study import ALONE
from hpc_train.model.track import TRACK_SCHEMA, TrackEntry, TrackPoint, TrackValue

NONE: Mapping[str, str] = MappingProxyType({})
WORK = {"parser": "events", "model": "resnet", "global_batch": "256"}


def point(
    speed: float, *, nodes: int = 1, basis: str = "throughput", work: Mapping[str, str] = NONE
) -> TrackPoint:
    """Return a point of a speed; 0 is a point at which both runs failed."""
    name = {"throughput": "throughput", "epoch time": "epoch_time_s"}[basis]
    return TrackPoint(
        series=ALONE,
        nodes=nodes,
        gpus_per_node=4,
        tasks_per_node=4,
        ranks=4 * nodes,
        basis=basis,
        work={**WORK, **work},
        n_ok=2 if speed else 0,
        n_submitted=2,
        not_ok="" if speed else "2 FAILED",
        values={name: TrackValue(value=speed)} if speed else {},
    )


def entry(day: int, *points: TrackPoint, study: str = "gpt", **conditions: str) -> TrackEntry:
    """Return the entry of a day, numbered from 0."""
    return TrackEntry(
        schema=TRACK_SCHEMA,
        site="marvin",
        study=study,
        started=str(np.datetime64("2026-01-01T03:00:00") + np.timedelta64(day, "D")) + "Z",
        conditions={name: (text,) for name, text in conditions.items()},
        points=points,
    )


def noisy(levels: Sequence[float], noise: float, seed: int) -> list[float]:
    """Return a speed for each level, with a relative standard deviation."""
    draws = np.random.default_rng(seed).normal(0, noise, len(levels))
    return [float(value) for value in np.asarray(levels) * np.exp(draws)]


def sized(levels: Sequence[float], sizes: int, noise: float = 0.02) -> list[TrackEntry]:
    """Return an entry a day with several sizes, the noise of each of which is its own."""
    every = [noisy(levels, noise, 1000 + size) for size in range(sizes)]
    return [
        entry(day, *(point(one[day] * (n + 1), nodes=n + 1) for n, one in enumerate(every)))
        for day in range(len(levels))
    ]


def history(levels: Sequence[float], noise: float = 0.02, seed: int = 1) -> list[TrackEntry]:
    """Return an entry a day."""
    return [entry(day, point(speed)) for day, speed in enumerate(noisy(levels, noise, seed))]
