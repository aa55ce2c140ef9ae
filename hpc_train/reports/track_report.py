"""The history of a site -> its report: what changed, each level, and every value over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.report import Figure, GateResult, Report
from hpc_train.model.track import LEAST_ENTRIES
from hpc_train.reports.point_and_series_names import counted
from hpc_train.reports.track_names import TrackInput, moment
from hpc_train.reports.track_tables import (
    SHOWN,
    changes_table,
    history_tables,
    levels_table,
    values_table,
)
from hpc_train.reports.track_verdicts import lines

KIND = "History of a site"
ALL_MET = "No newest level is worse than the one before by the threshold."
MOST = 5
METHOD = (
    "A level is the geometric mean of the values between two changes. Changes are found by least "
    "squares (Auger and Lawrence 1989) and F tests at the level 0.0003, divided by the number of "
    "series; the replicate is the entry, not the run. Intervals of steps: Student's t, 95 %. After "
    "several losses in a row, the level before is that before the first of them. All sizes: the "
    "geometric mean of the speeds, over the entries that have all of them."
)
NEWEST = "The tables of points show the newest {shown} entries; JSON and CSV have all."
THRESHOLD = (
    "A loss is reported if it is more than noise, unless its whole interval is a loss of less than "
    "{percent:g} % (--threshold {threshold:g})."
)


def track_report(
    found: TrackInput,
    verdicts: Sequence[GateResult],
    figures: tuple[Figure, ...] = (),
    *,
    values_first: bool = False,
) -> Report:
    """Return the report: summary, levels, changes, then each point over time.

    As JSON it has `rows`, one per metric and point (`before`, `now`, `step`, `since`, `verdict`,
    `why`), `changes`, and `values`, one per value. With `values_first` the first table, which is
    that of CSV, is `values`. `checks` are the metrics whose newest level is worse.
    """
    checks = tuple(lines(list(verdicts), "not met"))
    values = values_table(found)
    tables = (levels_table(found, verdicts), changes_table(found), *history_tables(found))
    return Report(
        title=f"History of {found.title}",
        summary=(*_answers(verdicts), *_measured(found), *_caveats(found, verdicts)),
        tables=(values, *tables) if values_first else (*tables, values),
        figures=figures,
        notes=(METHOD, _threshold(found.threshold), *_left_out(found), *found.notes),
        checks=checks,
        name=found.title,
        conditions={"threshold": found.threshold, "least_entries": LEAST_ENTRIES},
        kind=KIND,
        all_met=ALL_MET,
        of_runs=False,
    )


def _left_out(found: TrackInput) -> Iterator[str]:
    if any(len(track.spots) > SHOWN for track in found.tracks):
        yield NEWEST.format(shown=SHOWN)


def _threshold(threshold: float) -> str:
    return THRESHOLD.format(percent=100 * threshold, threshold=threshold)


def _answers(verdicts: Sequence[GateResult]) -> Iterator[str]:
    worse = [one for one in verdicts if one.outcome == "not met"]
    decided = sum(one.outcome in ("met", "not met") for one in verdicts)
    if worse:
        yield f"Worse than before: {len(worse)} of {decided} series of values."
    elif decided:
        yield f"No newest level is worse than before, in {decided} series of values."
    else:
        yield "No series of values has a verdict yet."
    for one in worse[:MOST]:
        yield f"Worse: {one.where}: {one.reason}."
    if len(worse) > MOST:
        yield f"{len(worse) - MOST} more are worse: see the levels."


def _measured(found: TrackInput) -> Iterator[str]:
    if found.entries:
        first, last = (moment(found.entries[i].started) for i in (0, -1))
        when = first if first == last else f"{first} to {last}"
        number = len(found.entries)
        word = "entry" if number == 1 else "entries"
        yield f"Measured: {number} {word}, {when} (start of the runs, UTC)."
        changes = sum(len(track.changes) for track in found.tracks)
        yield f"Measured: {counted(changes, 'change')} of level in {len(found.tracks)} series."


def _caveats(found: TrackInput, verdicts: Sequence[GateResult]) -> Iterator[str]:
    few = sum(len(track.known) < LEAST_ENTRIES for track in found.tracks)
    if few:
        yield (
            f"Caveats: {few} of {len(found.tracks)} series have fewer than {LEAST_ENTRIES} values: "
            "no change can be found in them."
        )
    gone = sum(one.outcome == "not decided" and "newest entry" in one.reason for one in verdicts)
    if gone:
        yield f"Caveats: {gone} series are not in the newest entry."
    yield from (f"Caveats: {note}" for note in found.notes)
