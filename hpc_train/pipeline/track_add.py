"""A study, a bundle, logs or a stored report -> an entry of the history of a site."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hpc_train.errors import ReportError
from hpc_train.model.log_selection import Search
from hpc_train.model.track import TrackEntry
from hpc_train.pipeline.compare import stored_report
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.runs.track_files import path_of, store

_UTC = "%Y-%m-%dT%H:%M:%SZ"
_FACT = "%Y-%m-%d %H:%M:%S UTC"


class Added(NamedTuple):
    """The file of an entry, whether it is new, and earlier files of the same study and start."""

    path: Path
    is_new: bool
    same_start: tuple[Path, ...]


class _Content(msgspec.Struct):
    """The parts of a report in JSON that an entry is made of."""

    rows: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    name: str = ""
    partial: bool = False
    provenance: dict[str, list[dict[str, Any]]] = {}


class Stated(NamedTuple):
    """What a user states of results that did not record it; None is as recorded."""

    site: str | None = None
    study: str | None = None
    started: str | None = None


RECORDED = Stated()


def add(word: str, history: Path, search: Search, stated: Stated = RECORDED) -> Added:
    """Store the report of a study, bundle, log or report.json as an entry; twice is once.

    The time of an entry is the start of its first run.

    Raises:
        HpcTrainError: the input cannot be read, is unfinished, or its site or start is unknown.
    """
    entry = entry_of_input(word, search, stated)
    path = path_of(history, entry)
    beside = sorted(path.parent.glob(f"{path.name.rpartition('-')[0]}-*.json"))
    is_new = store(history, entry) is not None
    return Added(path, is_new, tuple(other for other in beside if other != path))


def entry_of_input(word: str, search: Search, stated: Stated = RECORDED) -> TrackEntry:
    """Return the entry of an input of `add`.

    Raises:
        HpcTrainError: as for `add`.
    """
    from hpc_train.tables.track_entry import entry_of

    stored = stored_report(Path(word))
    raw = _built(word, search) if stored is None else stored
    try:
        content = msgspec.convert(raw, _Content)
        if content.partial:
            raise ReportError(
                f"{word}: some runs are not finished", "add it when hpctrain status shows none"
            )
        content.name = stated.study or content.name
        site = stated.site or _site(word, content)
        started = _started(word, content, stated.started)
        made = entry_of(msgspec.structs.asdict(content), word, site, started)
        # Decoded as it will be read: a report of another program may have texts for numbers.
        return msgspec.json.decode(msgspec.json.encode(made), type=TrackEntry)
    except (msgspec.ValidationError, msgspec.DecodeError) as failure:
        raise ReportError(f"{word}: not a report of hpctrain: {failure}") from None


def _built(word: str, search: Search) -> Any:
    from hpc_train.reports.formats.json_report import render

    return json.loads(render(build_report(report_inputs([word], search))))


def _site(word: str, content: _Content) -> str:
    named = _fact(content, "site") or _fact(content, "cluster")
    if len(named) == 1:
        return named[0]
    why = f"runs of several sites ({', '.join(named)})" if named else "its site is not recorded"
    raise ReportError(f"{word}: {why}", "name it: --site NAME")


def _started(word: str, content: _Content, started: str | None) -> str:
    if started is not None:
        return utc_of(started, "--started")
    for fact in _fact(content, "started"):
        try:
            first = datetime.strptime(fact.partition(" … ")[0], _FACT)
        except ValueError:
            continue
        return first.strftime(_UTC)
    raise ReportError(
        f"{word}: the start of its runs is not recorded", "state it: --started 2026-11-21T20:45"
    )


def utc_of(text: str, option: str) -> str:
    """Return a time as `2026-11-21T20:45:00Z`; without a time zone it is in UTC.

    Raises:
        ReportError: it is not a time.
    """
    try:
        found = datetime.fromisoformat(text.removesuffix("Z"))
        aware = found if found.tzinfo else found.replace(tzinfo=timezone.utc)
        return aware.astimezone(timezone.utc).strftime(_UTC)
    except (ValueError, OverflowError):
        raise ReportError(
            f"{option} {text!r}: not a time", "write it like 2026-11-21T20:45 (UTC)"
        ) from None


def _fact(content: _Content, name: str) -> list[str]:
    return [str(one.get("value", "")) for one in content.provenance.get(name, [])]
