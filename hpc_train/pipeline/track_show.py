"""The files of a history -> the report on it, with a verdict for each series of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.errors import ReportError, UnknownNameError
from hpc_train.model.report import Figure, Report
from hpc_train.model.report_options import ReportOptions
from hpc_train.model.track import Track, TrackEntry
from hpc_train.pipeline.track_add import utc_of
from hpc_train.runs.settings_diff import differences
from hpc_train.runs.track_files import History, StoredEntry, read_history

if TYPE_CHECKING:
    from hpc_train.reports.track_names import TrackInput

THRESHOLD = 0.05
_MOST_CHANGED = 8


class ShownHistory(NamedTuple):
    """The report, a line for each series without a verdict, and one for each unreadable file."""

    report: Report
    undecided: tuple[str, ...]
    damaged: tuple[str, ...]


class TrackDemands(NamedTuple):
    """What is shown: entries of a site or study, from a day on; losses above `threshold` count."""

    word: str | None = None
    since: str | None = None
    threshold: float = THRESHOLD


def show(
    folder: Path, demands: TrackDemands, options: ReportOptions, *, values_first: bool = False
) -> ShownHistory:
    """Return the report on a history; files that cannot be read are named, never skipped silently.

    Raises:
        HpcTrainError: there is no readable entry, or no such site or study.
    """
    from hpc_train.reports.track_names import TrackInput
    from hpc_train.reports.track_report import track_report
    from hpc_train.reports.track_verdicts import lines, verdicts
    from hpc_train.tables.track_history import tracks

    _check(demands)
    history = read_history(folder)
    chosen, notes = _without_revisions(_selected(history, folder, demands))
    entries = [one.entry for one in chosen]
    found = tracks(entries)
    given = TrackInput(
        title=_title(entries),
        entries=entries,
        files=[str(one.path) for one in chosen],
        tracks=found,
        changed=_changed(found, entries),
        threshold=demands.threshold,
        notes=(*notes, *(f"not used: {line}" for line in history.damaged)),
    )
    judged = verdicts(given)
    figures = _figures(given, options)
    report = track_report(given, judged, figures, values_first=values_first)
    return ShownHistory(report, tuple(lines(judged, "not decided")), history.damaged)


def _figures(given: TrackInput, options: ReportOptions) -> tuple[Figure, ...]:
    if not options.figures:
        return ()
    # matplotlib is imported only where it is needed.
    from hpc_train.reports.figures import track_figures

    return track_figures(given, options.images)


def _check(demands: TrackDemands) -> None:
    if not 0 < demands.threshold < 1:
        raise ReportError(
            f"--threshold {demands.threshold:g}: must be between 0 and 1; 0.05 is 5 %"
        )


def _selected(history: History, folder: Path, demands: TrackDemands) -> Sequence[StoredEntry]:
    if not history.entries:
        damaged = "\n".join(history.damaged)
        if damaged:
            raise ReportError(f"no entry can be read:\n{damaged}")
        raise ReportError(f"{folder}: the history is empty", "hpctrain track add STUDY")
    found = history.entries
    if demands.word is not None:
        found = tuple(one for one in found if demands.word in (one.entry.site, one.entry.study))
        if not found:
            known = {name for one in history.entries for name in (one.entry.site, one.entry.study)}
            raise UnknownNameError("site or study", demands.word, known, str(folder))
    if demands.since is not None:
        since = utc_of(demands.since, "--since")
        found = tuple(one for one in found if one.entry.started >= since)
        if not found:
            raise ReportError(f"{folder}: no entry since {demands.since}")
    return found


def _without_revisions(
    found: Sequence[StoredEntry],
) -> tuple[list[StoredEntry], tuple[str, ...]]:
    """Use one of the entries of a study that started at the same time: the one with most results.

    They are the same runs, read again (after a retry, or by another version): counting them twice
    would make noise look smaller.
    """
    best: dict[tuple[str, str, str], StoredEntry] = {}
    notes = []
    for one in found:
        key = (one.entry.site, one.entry.study, one.entry.started)
        other = best.get(key)
        if other is not None:
            kept, left = (one, other) if _results(one) > _results(other) else (other, one)
            notes.append(f"not used: {left.path}: the same study and start as {kept.path.name}")
            best[key] = kept
        else:
            best[key] = one
    return list(best.values()), tuple(notes)


def _results(one: StoredEntry) -> int:
    return sum(point.n_ok for point in one.entry.points)


def _title(entries: Sequence[TrackEntry]) -> str:
    studies = list(dict.fromkeys(entry.study for entry in entries))
    sites = list(dict.fromkeys(entry.site for entry in entries))
    study = studies[0] if len(studies) == 1 else f"{len(studies)} studies"
    return f"{study} on {sites[0] if len(sites) == 1 else f'{len(sites)} sites'}"


def _changed(
    tracks: Sequence[Track], entries: Sequence[TrackEntry]
) -> dict[tuple[int, int], tuple[tuple[str, str, str], ...]]:
    """Return, for each change of level, the conditions of which the levels share no value.

    The place of a change is uncertain by an entry: if nothing changed there, the conditions that
    changed one entry before or after are named as such.
    """
    found = {}
    for i, track in enumerate(tracks):
        own = [entries[spot.entry] for spot, _ in track.known]
        ends = [0, *(change.at for change in track.changes), len(own)]
        for k, (start, at, end) in enumerate(zip(ends, ends[1:], ends[2:], strict=False)):
            found[i, k] = next(filter(None, _near(own[start:end], at - start)), ())
    return found


def _near(entries: Sequence[TrackEntry], at: int) -> Iterator[tuple[tuple[str, str, str], ...]]:
    for shift, word in (0, ""), (-1, " (one entry earlier)"), (1, " (one entry later)"):
        if 0 < at + shift < len(entries):
            old, new = _values(entries[: at + shift]), _values(entries[at + shift :])
            names = [n for n in old if n in new and not set(old[n]) & set(new[n])]
            sides = [[{n: text} for n in names for text in side[n]] for side in (old, new)]
            rows = differences((), (), sides)[:_MOST_CHANGED]
            yield tuple((name, a, f"{b}{word}") for name, a, b in rows)


def _values(entries: Sequence[TrackEntry]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for entry in entries:
        for name, texts in entry.conditions.items():
            found.setdefault(name, {}).update(dict.fromkeys(texts))
    return {name: list(texts) for name, texts in found.items()}
