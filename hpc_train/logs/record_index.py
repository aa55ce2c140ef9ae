"""Index: records of log files from the last reading, so that only changed files are read."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.base import registry
from hpc_train.base.data_folders import data_file, site_folders
from hpc_train.logs.formats.base import LogParser
from hpc_train.logs.formats.formats import maker
from hpc_train.logs.line_dispatch import Mark
from hpc_train.logs.read_log import Log, ParseStats, Wanted, parsers_of, pressed, read, unpressed
from hpc_train.logs.record import Pack
from hpc_train.version import VERSION

_SEAL = 32


class _Entry(msgspec.Struct, frozen=True):
    """The state of a file, its inode, size [B] and time [ns], and the records read from it."""

    run: str
    path: bytes
    state: tuple[int, int, int]
    packs: list[bytes]
    census: ParseStats


_decode = msgspec.msgpack.Decoder(dict[str, _Entry]).decode


class Index:
    """Records of files, valid as long as the files and the parsers are the same."""

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
        """Whether a file need not be read again."""
        old = self._old.get(log.source)
        stated = (log.run, bytes(log.path), _state(log.path))
        return old is not None and (old.run, old.path, old.state) == stated

    def packs(self, log: Log, census: ParseStats) -> Iterator[Pack]:
        """Yield the records of a file; a file that has changed is read."""
        state = _state(log.path)
        if self.knows(log):
            old = self._old[log.source]
            self._new[log.source] = old
            yield from map(unpressed, old.packs)
            census.add(old.census)
            return
        own, packs = ParseStats(), list[bytes]()
        for pack in read(log, parsers_of(self._wanted), self._wanted.prefix, own, Mark()):
            packs.append(pressed(pack))
            yield pack
        census.add(own)
        self._changed = self._changed or state is not None
        if state is not None and not own.failed:
            self._new[log.source] = _Entry(log.run, bytes(log.path), state, packs, own)

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


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return the state of a regular file."""
    with suppress(OSError):
        now = path.stat()
        return (now.st_ino, now.st_size, now.st_mtime_ns) if path.is_file() else None
    return None


@functools.cache
def _code_of(names: tuple[str, ...]) -> str:
    """Return these parsers, and the state of the code that reads logs with them.

    Each run has an index, so that this is computed once. Built-in parsers are not imported: a
    report of logs that are all in an index needs none.
    """
    built_in = registry.BUILT_IN["parsers"]
    parsers = [built_in.get(name) or _plugin(maker(name)()) for name in names]
    own = (path for folder in site_folders() for path in folder.glob("formats/*.yaml"))
    files = [*Path(__file__).parent.rglob("*.py"), data_file("formats.yaml"), *own]
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
