"""Index: records of log files from the last reading, so that only new lines are read."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.base import registry
from hpc_train.base.data_folders import data_file
from hpc_train.base.files import open_regular
from hpc_train.logs.formats.base import LogParser
from hpc_train.logs.formats.formats import maker
from hpc_train.logs.read_log import Log, ParseStats, Reading, Wanted, extend, unpressed
from hpc_train.logs.record import Pack
from hpc_train.version import VERSION

# Length of the text before the mark that is compared: a rewritten file has another text there.
_TAIL = 4096
_SEAL = 32


class _Entry(msgspec.Struct, frozen=True):
    """The state of a file and the records read from it.

    `state`: inode, size [B] and time [ns]; `tail` is a digest of the text before the mark.
    """

    run: str
    path: bytes
    state: tuple[int, int, int]
    tail: bytes
    reading: Reading


_decode = msgspec.msgpack.Decoder(dict[str, _Entry]).decode


class Index:
    """Readings of files, valid as long as the parsers are the same."""

    def __init__(self, wanted: Wanted, kept: bytes = b"") -> None:
        """Load the result of `content`; it is ignored if damaged or written by other parsers."""
        self._wanted = wanted
        # Changes with the version, the set of parsers, and each parser.
        parts = [VERSION, wanted.prefix, repr(wanted.patterns), _code_of(wanted.parsers)]
        self._made_by = hashlib.sha256("\n".join(parts).encode()).digest()
        self._old = self._entries(kept)
        self._new: dict[str, _Entry] = {}
        self._changed = False

    def knows(self, log: Log) -> bool:
        """Whether a part of the file need not be read again."""
        return self._known(log) is not None

    def packs(self, log: Log, census: ParseStats) -> Iterator[Pack]:
        """Yield the records of a file; of a file that has grown, only the new part is read."""
        now, old = None, self._known(log)
        with suppress(OSError):
            now = log.path.stat()
        if old is not None and now is not None and _state(now) == old.state:
            self._new[log.source] = old
            yield from map(unpressed, old.reading.packs)
            census.add(old.reading.census)
            return
        reading = self._grown(log, old, now) or Reading()
        yield from map(unpressed, tuple(reading.packs))
        yield from extend(log, self._wanted, reading)
        census.add(reading.census)
        self._changed = self._changed or now is not None
        if now is not None and log.path.is_file() and not reading.census.failed:
            tail = _tail(log.path, reading.offset)
            entry = _Entry(log.run, bytes(log.path), _state(now), tail, reading)
            self._new[log.source] = entry

    def _known(self, log: Log) -> _Entry | None:
        old, name = self._old.get(log.source), (log.run, bytes(log.path))
        return old if old is not None and (old.run, old.path) == name else None

    def _grown(self, log: Log, old: _Entry | None, now: os.stat_result | None) -> Reading | None:
        if old is None or now is None or not old.reading.resumable:
            return None
        inode, size, _ = old.state
        if inode != now.st_ino or now.st_size <= size:
            return None
        if _tail(log.path, old.reading.offset) != old.tail:
            return None
        census = ParseStats()
        census.add(old.reading.census)
        return msgspec.structs.replace(old.reading, packs=[*old.reading.packs], census=census)

    def content(self) -> bytes | None:
        """Return the bytes to store; None if they have not changed."""
        if not self._changed and self._new.keys() == self._old.keys():
            return None
        kept = msgspec.msgpack.encode(self._new)
        return self._seal(kept) + kept

    def _entries(self, kept: bytes) -> dict[str, _Entry]:
        """Return the entries if they are undamaged, and written by the same parsers."""
        found = memoryview(kept)[_SEAL:]
        return _decode(found) if kept[:_SEAL] == self._seal(found) else {}

    def _seal(self, kept: bytes | memoryview) -> bytes:
        return hashlib.blake2b(kept, digest_size=_SEAL, key=self._made_by).digest()


def _state(now: os.stat_result) -> tuple[int, int, int]:
    return now.st_ino, now.st_size, now.st_mtime_ns


def _tail(path: Path, offset: int) -> bytes:
    try:
        with open_regular(path) as file:
            start = max(0, offset - _TAIL)
            file.seek(start)
            return hashlib.sha256(file.read(offset - start)).digest()
    except OSError:
        return b""


@functools.cache
def _code_of(names: tuple[str, ...]) -> str:
    """Return these parsers, and the state of the code that reads logs with them.

    Each run has an index, so that this is computed once. Built-in parsers are not imported: a
    report of logs that are all in an index needs none.
    """
    built_in = registry.BUILT_IN["parsers"]
    parsers = [built_in.get(name) or _plugin(maker(name)()) for name in names]
    files = [*Path(__file__).parent.rglob("*.py"), data_file("formats.yaml")]
    return "\n".join([*parsers, *sorted(map(_state_of_file, files))])


def _plugin(parser: LogParser) -> str:
    """Return the parser as text, and the state of the file that defines its class."""
    kind = type(parser)
    stated = repr(parser) if kind.__repr__ is not object.__repr__ else kind.__qualname__
    source = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return f"{stated} {_state_of_file(Path(source)) if source else ''}"


def _state_of_file(path: Path) -> str:
    state = path.stat()
    return f"{path} {state.st_size} {state.st_mtime_ns}"
