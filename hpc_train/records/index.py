"""Index: what log files held when they were last read, so that only what is new is read again."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import zstandard

from hpc_train.records.parsers.base import LogParser
from hpc_train.records.reading import Log, Reading, Wanted, extend, parsers_of, whole
from hpc_train.version import VERSION

# Of the text before the mark: a file that was written anew does not end like the old one.
_TAIL = 4096


class _Entry(msgspec.Struct, frozen=True):
    """A file as it was, and what it held; `tail` is a digest of what stands before the mark."""

    run: str
    path: str
    inode: int
    size: int
    changed: int
    tail: bytes
    reading: Reading


class _Kept(msgspec.Struct):
    made_by: bytes
    entries: dict[str, _Entry]


class Index:
    """Readings of files, for as long as the same parsers would read them."""

    def __init__(self, wanted: Wanted, kept: bytes = b"") -> None:
        """Take up what `content` returned once; damaged or of other parsers, it is nothing."""
        self._wanted = wanted
        self._made_by = _fingerprint(wanted)
        self._old = _entries(kept, self._made_by)
        self._new: dict[str, _Entry] = {}
        self._changed = False
        self._states: dict[str, os.stat_result] = {}

    def knows(self, log: Log) -> bool:
        """Whether there is something that need not be read again; how the file stands is noted."""
        with suppress(OSError):
            self._states[log.source] = log.path.stat()
        return self._known(log) is not None

    def reading(self, log: Log, read: Reading | None = None) -> Reading:
        """Return what a file holds; of one that has only grown, the new part is read.

        `read` is what was read of it since `knows`, as it knew nothing.
        """
        if log.source not in self._states:
            self.knows(log)
        now, old = self._states.pop(log.source, None), self._known(log)
        if now is None:
            return read or whole(log, self._wanted)
        if old is not None and _state(now) == (old.inode, old.size, old.changed):
            self._new[log.source] = old
            return old.reading
        reading = read or self._grown(log, old, now) or whole(log, self._wanted)
        self._changed = True
        if log.path.is_file() and not reading.census.failed:
            self._new[log.source] = _Entry(
                log.run,
                str(log.path),
                *_state(now),
                _tail(log.path, reading.offset),
                reading,
            )
        return reading

    def _known(self, log: Log) -> _Entry | None:
        old = self._old.get(log.source)
        return old if old is not None and (old.run, old.path) == (log.run, str(log.path)) else None

    def _grown(self, log: Log, old: _Entry | None, now: os.stat_result) -> Reading | None:
        if old is None or not old.reading.resumable:
            return None
        if old.inode != now.st_ino or now.st_size <= old.size:
            return None
        if _tail(log.path, old.reading.offset) != old.tail:
            return None
        return extend(log, self._wanted, old.reading)

    def content(self) -> bytes | None:
        """Return what to keep, None if that is what was kept already."""
        if not self._changed and self._new.keys() == self._old.keys():
            return None
        kept = msgspec.msgpack.encode(_Kept(self._made_by, self._new))
        return zstandard.compress(kept, level=1)


def _state(now: os.stat_result) -> tuple[int, int, int]:
    return now.st_ino, now.st_size, now.st_mtime_ns


def _entries(kept: bytes, made_by: bytes) -> dict[str, _Entry]:
    if not kept:
        return {}
    try:
        found = msgspec.msgpack.decode(zstandard.decompress(kept), type=_Kept)
    except (msgspec.DecodeError, zstandard.ZstdError, MemoryError):
        return {}
    return found.entries if found.made_by == made_by else {}


def _tail(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            start = max(0, offset - _TAIL)
            file.seek(start)
            return hashlib.sha256(file.read(offset - start)).digest()
    except OSError:
        return b""


def _fingerprint(wanted: Wanted) -> bytes:
    """Return what changes with hpctrain, its set of parsers, and each of them."""
    parts = [VERSION, wanted.prefix, repr(wanted.patterns)]
    parts += [f"{name} {_version(parser)}" for name, parser in parsers_of(wanted).items()]
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _version(parser: LogParser) -> str:
    """Return the parser as text, and the state of the file that its class is in."""
    kind = type(parser)
    stated = repr(parser) if kind.__repr__ is not object.__repr__ else kind.__qualname__
    source = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if source is None:
        return stated
    state = Path(source).stat()
    return f"{stated} {source} {state.st_size} {state.st_mtime_ns}"
