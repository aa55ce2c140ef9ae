"""CloudWatch -> the logs of a run: one stream for each host becomes one file for each rank.

The script writes the lines of a rank behind `[rank N] `; other lines are those of the job. A file
of the folder remembers how far each stream was read, and how long each log was then: what a killed
reader appended is removed before the next one reads.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.atomicfile import write_atomic
from hpc_train.json_files import exclusive
from hpc_train.model.run import RunFolder
from hpc_train.model.value import Value
from hpc_train.submissions.sagemaker.aws_messages import code_of

GROUP = "/aws/sagemaker/TrainingJobs"
STATE_FILE = ".cloudwatch.json"
_OF_RANK = re.compile(r"^\[(rank|node) (\d{1,7})\] ?")
_HOST = re.compile(r"/(algo-\d{1,5})(?:-|$)")
_JOB_LOG = "job.out"
# A token of GetLogEvents is valid for 24 hours.
_OLD_TOKEN = ("InvalidParameterException", "ResourceNotFoundException")
# Each page has at most 10,000 events.
_MOST_PAGES = 10_000


class _Stream(Value, frozen=True, kw_only=True):
    """How far a stream was read: the token of the next page, and the number of events."""

    token: str | None = None
    events: int = 0


class _Position(Value, frozen=True, kw_only=True):
    """The streams, in the order in which they were found, and the sizes of the logs [bytes]."""

    streams: dict[str, _Stream] = msgspec.field(default_factory=dict)
    sizes: dict[str, int] = msgspec.field(default_factory=dict)


class _Page(Value, frozen=True, kw_only=True):
    """New events, and the position after them; with `restart`, the first of a later start."""

    name: str
    events: tuple[str, ...]
    end: _Stream
    restart: bool


def fetch(logs: Any, job: str, run: RunFolder) -> None:
    """Append the new lines of a job to the logs of its run; `logs` is a client of CloudWatch.

    A job that has not started has no stream.

    Raises:
        StoreError: the logs cannot be written.
    """
    with exclusive(run.logs / ".cloudwatch.lock"):
        position = _read(run.logs / STATE_FILE)
        _cut(run.logs, position)
        for name in dict.fromkeys([*position.streams, *_streams(logs, job)]):
            for page in _pages(logs, name, position):
                position = _append(run.logs, page, position)
                write_atomic(run.logs / STATE_FILE, msgspec.json.encode(position), flush=False)


def _read(path: Path) -> _Position:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Position)
    except (FileNotFoundError, msgspec.DecodeError):
        return _Position()


def _cut(folder: Path, position: _Position) -> None:
    """Remove what was appended after the position was written."""
    for path in folder.glob("*.out"):
        size = position.sizes.get(path.name, 0)
        if path.stat().st_size > size:
            with path.open("r+b") as stream:
                stream.truncate(size)


def _streams(logs: Any, job: str) -> list[str]:
    """Return the names of a job's streams, those of earlier starts first."""
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {"logGroupName": GROUP, "logStreamNamePrefix": f"{job}/"}
    for _ in range(_MOST_PAGES):
        try:
            page = logs.describe_log_streams(**request)
        except logs.exceptions.ResourceNotFoundException:
            return []
        found += page.get("logStreams", [])
        if not page.get("nextToken"):
            break
        request["nextToken"] = page["nextToken"]
    found.sort(key=lambda one: (one.get("creationTime", 0), len(one["logStreamName"])))
    return [one["logStreamName"] for one in found]


def _is_restart(name: str, position: _Position) -> bool:
    """Whether a host has a stream of an earlier start."""
    host = _HOST.search(name)
    return host is not None and any(f"/{host[1]}-" in known for known in position.streams)


def _pages(logs: Any, name: str, position: _Position) -> Iterator[_Page]:
    """Yield the pages after a position; the end is reached when the token stays the same.

    A page may be empty before the end.
    """
    known = position.streams.get(name, _Stream())
    token, taken, skipped = known.token, known.events, 0
    restart = not known.events and _is_restart(name, position)
    for _ in range(_MOST_PAGES):
        after = {"nextToken": token} if token else {}
        try:
            page = logs.get_log_events(
                logGroupName=GROUP, logStreamName=name, startFromHead=True, **after
            )
        except logs.exceptions.ClientError as failure:
            if token is None or code_of(failure) not in _OLD_TOKEN:
                raise
            # Begin again, and leave out the events that the logs have.
            token, skipped = None, taken
            continue
        events = [str(event["message"]) for event in page["events"]]
        new = events[skipped:]
        skipped = max(0, skipped - len(events))
        taken += len(new)
        following = page["nextForwardToken"]
        yield _Page(
            name=name,
            events=tuple(new),
            end=_Stream(token=following, events=taken),
            restart=restart and bool(new),
        )
        restart = restart and not new
        if following == token:
            return
        token = following


def _append(folder: Path, page: _Page, position: _Position) -> _Position:
    """Append each line to its log; return the new position."""
    texts: dict[str, list[str]] = defaultdict(list)
    for file, text in _by_file(page.events):
        texts[file].append(text)
    sizes = {}
    for file, parts in texts.items():
        marker = "\nhpctrain: restart\n" if page.restart else ""
        with (folder / file).open("ab") as stream:
            stream.write((marker + "".join(parts)).encode("utf-8", "replace"))
            sizes[file] = stream.tell()
    return _Position(
        streams={**position.streams, page.name: page.end}, sizes={**position.sizes, **sizes}
    )


def _by_file(events: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of a log and a line; a progress bar is written with carriage returns."""
    for event in events:
        for line in event.rstrip("\n").split("\n"):
            prefix = _OF_RANK.match(line)
            file = f"{prefix[1]}-{prefix[2]}.out" if prefix else _JOB_LOG
            rest = line[prefix.end() :] if prefix else line
            yield file, rest.replace("#015", "\r") + "\n"
