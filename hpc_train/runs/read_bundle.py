"""A bundle -> its checked contents, in a temporary folder that is removed at exit."""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import msgspec
import zstandard

from hpc_train.errors import StoreError, newer_version
from hpc_train.json_files import read_json
from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.run import Run, RunFolder
from hpc_train.model.transport import Transport
from hpc_train.runs.bundle_format import (
    EVIDENCE,
    MANIFEST,
    RECORDS,
    SCHEMA,
    Contents,
    Member,
    StoredResults,
    StoredState,
)
from hpc_train.runs.run_folders import read_run

# A bundle of ten thousand runs needs a tenth of it.
_MOST_BYTES = 4 << 30
_MOST_FILES = 500_000
# Headers and read-ahead; a longer header is malicious.
_SLACK = 4 << 20
_NAME = re.compile(
    r"^(?!.*(?:^|/)\.\.?(?:/|\Z))[^/\\\0]{1,250}(?:/[^/\\\0]{1,250}){0,3}", re.DOTALL
)
_REPAIR_HINT = "copy it again, or pack it again: hpctrain report STUDY --bundle FILE.tar.zst"
_DAMAGE = (zstandard.ZstdError, tarfile.TarError, EOFError, ValueError)
_decode_records = msgspec.json.Decoder(Record).decode_lines


class Opened(NamedTuple):
    """The evidence of a bundle, as it was when it was packed."""

    study: ExpectedStudy
    records: tuple[Record, ...]
    warnings: tuple[str, ...]
    unreadable: tuple[str, ...]
    own: tuple[Run, ...]
    transports: dict[str, Transport]
    digested: tuple[str, ...]
    against: tuple[dict[str, Any], ...]
    against_implausible: tuple[str, ...]
    packed: bool = True


def open_bundle(path: Path, most: int = _MOST_BYTES) -> Opened:
    """Unpack a bundle of limited size, check each member, and read the evidence.

    Raises:
        StoreError: it is not a bundle, is damaged, or was packed by a newer hpctrain.
    """
    home = Path(tempfile.mkdtemp(prefix="hpctrain-bundle-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    _check(path, home, _unpacked(path, home, most))
    try:
        return _read(home)
    except msgspec.DecodeError as failure:
        raise StoreError(f"{path}: not readable by this hpctrain: {failure}") from None
    except StoreError as failure:
        message = failure.message.replace(f"{home}/", f"{path}: ")
        raise StoreError(message, failure.hint) from None


def _unpacked(path: Path, home: Path, most: int) -> dict[str, Member]:
    """Write the members into a folder; return their sizes and digests."""
    found: dict[str, Member] = {}
    last = "its beginning"
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            stream = _Limited(reader)
            with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as tar:
                for entry in _entries(tar, stream, path):
                    last = entry.name
                    most -= entry.size
                    if most < 0 or len(found) >= _MOST_FILES:
                        raise StoreError(f"{path}: {last}: larger than a bundle may be")
                    found[last] = _written(tar, entry, home)
    except _DAMAGE as failure:
        raise StoreError(f"{path}: damaged after {last}: {failure}", _REPAIR_HINT) from None
    except OSError as failure:
        raise StoreError(f"{path}: {last}: {failure.strerror or failure}") from None
    return found


def _entries(tar: tarfile.TarFile, stream: _Limited, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield plain files with plain names, and refuse everything else."""
    while True:
        stream.allow(_SLACK)
        entry = tar.next()
        if entry is None:
            return
        if not entry.isreg() or entry.issparse() or not _NAME.fullmatch(entry.name):
            raise StoreError(f"{path}: {entry.name!r}: only plain files below the bundle's folder")
        stream.allow(entry.size + _SLACK)
        yield entry


def _written(tar: tarfile.TarFile, entry: tarfile.TarInfo, home: Path) -> Member:
    target, digest, size = home / entry.name, hashlib.sha256(), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(entry)
    # Not over a member of the same name.
    with target.open("xb") as file:
        while source is not None and (block := source.read(1 << 20)):
            digest.update(block)
            size += len(block)
            file.write(block)
    return Member(size=size, sha256=digest.hexdigest())


class _Limited:
    """A stream with a limit of bytes per read, because headers are read into memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._left = stream, _SLACK

    def allow(self, count: int) -> None:
        self._left = count

    def read(self, count: int) -> bytes:
        block = self._stream.read(count)
        self._left -= len(block)
        if self._left < 0:
            raise ValueError("a header larger than any file needs")
        return block


def _check(path: Path, home: Path, found: dict[str, Member]) -> None:
    """Compare the unpacked files with the manifest.

    Raises:
        StoreError: no manifest, one of a newer hpctrain, or a member that differs from it.
    """
    if MANIFEST not in found:
        raise StoreError(
            f"{path}: not a bundle of hpctrain, or truncated: no {MANIFEST}", _REPAIR_HINT
        )
    contents = _contents(path, home / MANIFEST)
    for name in sorted({*contents.members, *found} - {MANIFEST}):
        if name not in found:
            raise StoreError(f"{path}: {name}: missing", _REPAIR_HINT)
        if found[name] != contents.members.get(name):
            raise StoreError(f"{path}: {name}: damaged: it differs from {MANIFEST}", _REPAIR_HINT)


def _contents(path: Path, manifest: Path) -> Contents:
    try:
        content = msgspec.json.decode(manifest.read_bytes())
        schema = content.get("schema") if isinstance(content, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            raise StoreError(*newer_version(str(path), schema, SCHEMA))
        return msgspec.convert(content, Contents)
    except (msgspec.DecodeError, msgspec.ValidationError) as failure:
        raise StoreError(f"{path}: {MANIFEST}: damaged: {failure}", _REPAIR_HINT) from None


def _read(home: Path) -> Opened:
    results = read_json(home / EVIDENCE, StoredResults)
    for run in results.runs:
        if "/" in run.run_id or not _NAME.fullmatch(run.run_id):
            raise StoreError(f"{home}/{EVIDENCE}: {run.run_id!r}: not a name of a run")
    folders = [RunFolder(path=home / run.run_id) for run in results.runs]
    files = [*(folder.records for folder in folders), home / RECORDS]
    transports = {
        folder.run_id: read_json(folder.transport, Transport)
        for folder in folders
        if folder.transport.is_file()
    }
    return Opened(
        study=msgspec.structs.replace(results.study, runs=tuple(results.study.runs)),
        records=tuple(chain.from_iterable(map(_records, files))),
        warnings=results.warnings,
        unreadable=results.unreadable,
        own=tuple(map(_run, folders, results.runs)),
        transports={**transports, **results.transports},
        digested=results.logs,
        against=results.against,
        against_implausible=results.against_implausible,
    )


def _records(path: Path) -> list[Record]:
    return _decode_records(path.read_bytes()) if path.is_file() else []


def _run(folder: RunFolder, stored: StoredState) -> Run:
    files = read_run(folder)
    return Run(
        folder=folder,
        manifest=files.manifest,
        submission=files.submission,
        status=files.status,
        state=stored.state,
        problem=stored.problem,
        job_report=stored.job_report,
        newer=files.newer,
    )
