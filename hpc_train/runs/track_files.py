"""The files of a history: one small JSON file for each qualification, never changed again.

`HISTORY/SITE/STUDY/2026-11-21T204554Z-<digest>.json`: the name has the start of the runs and the
digest of the content. Two branches of git therefore add different files and merge without a
conflict, and adding an entry twice writes the same file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from hpc_train.errors import StoreError, newer_version
from hpc_train.json_files import cannot_write, to_json, write_file
from hpc_train.model.track import TRACK_SCHEMA, TrackEntry
from hpc_train.regularfile import read_regular

_DIGITS = 12
# Names of files have at most 255 bytes; a longer name gets a digest.
_LONGEST = 120
_CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
_BYTE = re.compile(r"\(byte (\d+)\)")
_KEY = re.compile(r"\.(\w+)(?:\[\.\.\.\]|\[\d+\])*`?$")
# An entry of a thousand points has less than a megabyte.
_LARGEST = 64 << 20


class StoredEntry(NamedTuple):
    """An entry and its file."""

    path: Path
    entry: TrackEntry


class History(NamedTuple):
    """The entries that can be read, and a line for each file that cannot: `FILE:LINE: why`."""

    entries: tuple[StoredEntry, ...]
    damaged: tuple[str, ...]


class _Said(msgspec.Struct):
    schema: int = TRACK_SCHEMA


def path_of(folder: Path, entry: TrackEntry) -> Path:
    """Return the file of an entry below the folder of the history."""
    stamp = entry.started.replace(":", "")
    name = f"{stamp}-{_digest(to_json(entry))}.json"
    return folder / _safe(entry.site) / _safe(entry.study) / name


def store(folder: Path, entry: TrackEntry) -> Path | None:
    """Write an entry; return its file, or None if it was there already.

    Raises:
        StoreError: the folder cannot be written.
    """
    path = path_of(folder, entry)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return None
    except OSError as failure:
        raise cannot_write(path, failure) from None
    write_file(path, to_json(entry))
    return path


def read_history(folder: Path) -> History:
    """Return the entries below a folder, oldest first.

    Raises:
        StoreError: the folder does not exist or cannot be read.
    """
    entries: list[StoredEntry] = []
    damaged: list[str] = []
    for path in _files(folder):
        try:
            entries.append(StoredEntry(path, _read(path)))
        except StoreError as failure:
            damaged.append(failure.message)
    entries.sort(key=lambda one: (one.entry.started, one.path.name))
    return History(tuple(entries), tuple(damaged))


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files `*/*/*.json`; a folder that cannot be read is an error, not an absence."""
    try:
        for site in sorted(folder.iterdir()):
            for study in sorted(site.iterdir()) if _is_folder(site) else ():
                if _is_folder(study):
                    yield from sorted(p for p in study.iterdir() if p.suffix == ".json")
    except FileNotFoundError:
        raise StoreError(
            f"{folder}: there is no history", "start one with: hpctrain track add STUDY"
        ) from None
    except OSError as failure:
        raise StoreError(
            f"{failure.filename or folder}: cannot be read: {failure.strerror or failure}",
            "name another folder with --history",
        ) from None


def _is_folder(path: Path) -> bool:
    return not path.name.startswith(".") and path.is_dir()


def _read(path: Path) -> TrackEntry:
    try:
        raw = read_regular(path, _LARGEST)
    except OSError as failure:
        raise StoreError(f"{path}: cannot be read: {failure.strerror or failure}") from None
    conflict = _CONFLICT.search(raw)
    if conflict:
        line = _line(raw, conflict.start())
        raise StoreError(f"{path}:{line}: a conflict of git that is not resolved")
    try:
        entry = msgspec.json.decode(raw, type=TrackEntry)
    except RecursionError:
        raise StoreError(f"{path}:1: damaged: nested too deeply") from None
    except msgspec.DecodeError as failure:
        raise StoreError(*_problem(path, raw, failure)) from None
    if not path.stem.endswith(_digest(to_json(entry))):
        raise StoreError(f"{path}:1: changed after it was stored: its digest is not the name's")
    return entry


def _problem(path: Path, raw: bytes, failure: msgspec.DecodeError) -> tuple[str, str]:
    """Return message and hint."""
    schema = _schema(raw)
    if schema > TRACK_SCHEMA:
        line = _line(raw, raw.find(b'"schema"'))
        return newer_version(f"{path}:{line}", schema, TRACK_SCHEMA)
    text = str(failure)
    byte, key = _BYTE.search(text), _KEY.search(text)
    place = int(byte[1]) if byte else raw.find(f'"{key[1]}"'.encode()) if key else 0
    if "truncated" in text:
        place = len(raw)
    return f"{path}:{_line(raw, max(place, 0))}: damaged: {text}", ""


def _schema(raw: bytes) -> int:
    try:
        return msgspec.json.decode(raw, type=_Said).schema
    except (msgspec.DecodeError, RecursionError):
        return TRACK_SCHEMA


def _line(raw: bytes, place: int) -> int:
    return raw.count(b"\n", 0, place) + 1


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _safe(name: str) -> str:
    """Return a name of a folder: `%2F` for `/`, never `..` or a hidden file."""
    safe = quote(name.encode(errors="surrogatepass"), safe=" +,=@()")
    safe = f"%2E{safe[1:]}" if safe.startswith(".") else safe
    if len(safe) <= _LONGEST:
        return safe
    return f"{safe[:_LONGEST]}-{_digest(name.encode(errors='surrogatepass'))}"
