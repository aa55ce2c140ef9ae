"""Tracks of a history -> a verdict for each: whether its newest level is worse than the one before.

The rule is that of `compare --min-effect`: a loss counts if it is more than noise, unless its whole
interval is within the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.report import GateOutcome, GateResult
from hpc_train.model.track import LEAST_ENTRIES, Change, Track
from hpc_train.reports.point_and_series_names import counted
from hpc_train.reports.track_names import (
    TrackInput,
    metric_name,
    moment,
    point_names,
    ratio_text,
)

GATE = "history"


def verdicts(found: TrackInput) -> list[GateResult]:
    """Return a verdict for each track, in their order.

    `not met`: the newest level is worse by the threshold, or the newest entry has no result at the
    point. `not decided`: too few entries, or the newest entry lacks the point.
    """
    newest: dict[tuple[str, str], int] = {}
    for number, entry in enumerate(found.entries):
        newest[entry.site, entry.study] = number
    return [
        _verdict(track, name, found, newest[track.site, track.study])
        for track, name in zip(found.tracks, point_names(found), strict=True)
    ]


def _verdict(track: Track, name: str, found: TrackInput, newest: int) -> GateResult:
    where = name if track.speed else f"{name}, {metric_name(track)}"
    last, limit = track.spots[-1], 1 - found.threshold

    def result(outcome: GateOutcome, reason: str) -> GateResult:
        return GateResult(gate=GATE, where=where, outcome=outcome, reason=reason, limit=limit)

    if last.entry != newest:
        return result(
            "not decided", f"not in the newest entry ({moment(found.entries[newest].started)})"
        )
    if last.value is None and track.speed:
        why = last.not_ok or "no result"
        return result("not met", f"no result in the newest entry: {why}")
    if len(track.known) < LEAST_ENTRIES:
        few = f"{counted(len(track.known), 'value')}, a change needs {LEAST_ENTRIES}"
        return result("not decided", few)
    if track.newest is None:
        return result("met", f"no change of level in {len(track.known)} values")
    return _of_change(track, track.newest, found, where)


def _of_change(track: Track, change: Change, found: TrackInput, where: str) -> GateResult:
    limit = 1 - found.threshold
    before, now = (len(level) for level in track.newest_levels())
    start = found.entries[track.known[change.at][0].entry].started
    worse = change.ratio < 1 and change.low <= limit
    what = f"{metric_name(track)} {ratio_text(change.ratio, change.low, change.high)} times"
    counts = f"{now} values; before: {before}"
    small = "" if worse or change.ratio >= 1 else f"; the loss is less than {found.threshold:g}"
    return GateResult(
        gate=GATE,
        where=where,
        outcome="not met" if worse else "met",
        reason=f"{what} the level before, since {moment(start)} ({counts}){small}",
        value=change.ratio,
        low=change.low,
        high=change.high,
        limit=limit,
    )


def lines(found: list[GateResult], outcome: GateOutcome) -> Iterator[str]:
    """Yield a line for each verdict of that outcome."""
    word = "worse" if outcome == "not met" else outcome
    yield from (f"{word}: {one.where}: {one.reason}" for one in found if one.outcome == outcome)
