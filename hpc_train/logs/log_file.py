"""Paths -> log files of each job, and their bytes: compressed ones, and event files as lines."""

import bz2
import gzip
import io
import lzma
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol, cast

import zstandard

from hpc_train.base.errors import LogParseError
from hpc_train.base.files import START, binary_kind, is_folder, open_stream
from hpc_train.logs.line import Stream

COMPRESSED_START = 6
"""Number of first bytes that `packed_kind` needs."""
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What reading damaged data raises."""
_COMPRESSED = {
    b"\x1f\x8b": ".gz",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"BZh": ".bz2",
}


class Unpacker(Protocol):
    """A decompressor that reads from a file."""

    def readinto1(self, buffer: memoryview, /) -> int:
        """Fill a part of the buffer, with one read if possible."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, or all."""
        ...


def packed_kind(start: bytes) -> str:
    """Return the extension of a compressed file, by its first bytes; empty for any other."""
    return next((kind for magic, kind in _COMPRESSED.items() if start.startswith(magic)), "")


def _zstd(file: IO[bytes]) -> Unpacker:
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return cast(Unpacker, reader)


UNPACK: dict[str, Callable[[IO[bytes]], Unpacker]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
    ".bz2": bz2.BZ2File,
}
"""The decompressors by extension."""


# torchrun --log-dir: RUN/attempt_0/3/stderr.log, with a number for each local rank.
_ATTEMPT = re.compile(r"^attempt_\d{1,6}$")
# `job.out` and `job.err`, `job.o4711` and `job.e4711`, `stdout` and `stderr`, also compressed.
_ERRORS = re.compile(r"(?:(?<=\.)err|(?<=\.)stderr|(?<=\.)e(?=\d+(?:\.|$))|^stderr)")
_OUTPUT = {"err": "out", "stderr": "stdout", "e": "o"}
_LOG = re.compile(
    r"(?:\.(?:out|log|err|txt|stdout|stderr|[oe]\d+)(?:\.\d{1,4})?|^std(?:out|err)|metrics\.csv)"
    r"(?:\.(?:gz|xz|zst|bz2))?$"
)
_EVENTS = re.compile("tfevents")
_RANK = re.compile(r"rank[-_.]?(\d{1,7})(?!\d)")
# torchrun: job/attempt_0/3/stdout.log.
_DEEPEST = 5
NAMES = (
    "*.out, *.log, *.err, *.txt, *.o123, stdout, stderr, metrics.csv, plain or compressed; else "
    "*tfevents*"
)


def log_files(paths: Iterable[Path]) -> list[Path]:
    """Return the log files of `paths`, sorted: files as given, and those below a folder.

    Unreadable and hidden folders and links to folders are skipped.
    """
    files: set[Path] = set()
    for path in paths:
        files.update(_below(path, _DEEPEST) if is_folder(path) else [path])
    return sorted(files)


def event_files(folder: Path) -> list[Path]:
    """Return the event files of TensorBoard below a folder, sorted."""
    return sorted(_below(folder, _DEEPEST, _EVENTS))


def rank_of(path: Path) -> int | None:
    """Return the global rank in the name of a file: `rank-3.out`, `worker_rank3.log`."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


def _below(folder: Path, depth: int, name: re.Pattern[str] = _LOG) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _below(folder / entry.name, depth - 1, name)
        elif name.search(entry.name):
            # A loop of links counts as a file, and fails when it is read.
            with suppress(OSError):
                if not entry.is_file():
                    continue
            yield folder / entry.name


def readable(name: str) -> str:
    r"""Return a file name as printable UTF-8; other bytes become `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def jobs_of(files: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the files of each job, in their order; by default each file is one job.

    Several files form one job if they are in a folder with files of several ranks, in a log folder
    of torchrun, or are the standard output and error of one name. The key is the file or folder.
    """
    ranks = Counter(file.parent for file in files if rank_of(file) is not None)
    there = set(files)
    jobs: dict[Path, list[Path]] = {}
    for file in files:
        jobs.setdefault(_key(file, ranks, there), []).append(file)
    return jobs


def _key(file: Path, ranks: Counter[Path], there: set[Path]) -> Path:
    for folder in file.parents:
        if _ATTEMPT.match(folder.name):
            return folder.parent
    if ranks[file.parent] > 1:
        return file.parent
    output = file.with_name(_ERRORS.sub(lambda end: _OUTPUT[end[0]], file.name, count=1))
    return output if output in there else file


# Path -> stream of a log's bytes, decompressed.

# Capacity of a pipe on Linux [B].
_PIPE = 1 << 16


class _Unpacked:
    """Fills buffers from a decompressor; the data before a damaged part are kept."""

    def __init__(self, packed: Unpacker) -> None:
        self._packed = packed
        self._damage: Exception | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with what is available."""
        if self._damage is not None:
            raise self._damage
        filled = 0
        try:
            while filled < len(buffer):
                count = self._packed.readinto1(buffer[filled:])
                if not count:
                    break
                filled += count
        except DAMAGE as damage:
            if not filled:
                raise
            self._damage = damage
        return filled


@contextmanager
def open_log(path: Path, offset: int = 0) -> Iterator[Stream]:
    """Open a log for reading, from `offset` [B] of a plain file on.

    Data compressed with gzip, xz, zstd or bzip2 are decompressed, whatever the file name. An event
    file of TensorBoard is read as a line for each scalar.

    Raises:
        LogParseError: the file cannot be read, or its compressed data are damaged.
    """
    try:
        with open_stream(path) as file:
            if not file.seekable():
                pipe: io.BufferedReader = io.BufferedReader(cast(io.RawIOBase, file), _PIPE)
                unpack = UNPACK.get(packed_kind(pipe.peek(COMPRESSED_START)))
                yield _Unpacked(unpack(pipe)) if unpack else _Plain(pipe)
                return
            unpack = UNPACK.get(_kind(path, file))
            if is_event_file(path):
                yield EventLines(path, unpack(file) if unpack else file)
                return
            if offset:
                file.seek(offset)
            yield _Unpacked(unpack(file)) if unpack else cast(Stream, file)
    except DAMAGE as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise LogParseError(f"{path}: cannot be read: {reason}") from error


def unreadable_kind(path: Path) -> str:
    """Return what a file is that is no log, and what to do; an empty text if it may be one."""
    if not path.is_file():
        return ""
    start = bytearray(START)
    with open_log(path) as stream:
        size = stream.readinto(memoryview(start)) or 0
    return binary_kind(bytes(start[:size]))


def _kind(path: Path, file: IO[bytes]) -> str:
    start = file.read(COMPRESSED_START)
    file.seek(0)
    return packed_kind(start) or path.suffix


class _Plain:
    """Returns what a pipe has delivered so far, instead of waiting for a full buffer."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill a part of the buffer."""
        # With a larger buffer than the pipe, the reader would wait for more data than the pipe has.
        return self._file.readinto1(buffer[:_PIPE])


MARK = "tfevents"
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEAD = _LENGTH.size + _CRC.size
# Larger data are graphs, images or histograms, and are skipped in parts.
_LARGEST = 1 << 20
# A tag contains no line end, and no escape sequence of terminals.
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")


class EventLines:
    """A stream of the scalars in an event file; those before a damaged event are kept."""

    def __init__(self, path: Path, source: IO[bytes] | Unpacker) -> None:
        self._lines = _lines(path, source)
        self._text = bytearray()
        self._damage: LogParseError | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with lines.

        Raises:
            LogParseError: the file is damaged after the lines that were returned before.
        """
        try:
            while self._damage is None and len(self._text) < len(buffer):
                self._text += next(self._lines)
        except StopIteration:
            pass
        except LogParseError as damage:
            self._damage = damage
        if self._damage is not None and not self._text:
            raise self._damage
        count = min(len(buffer), len(self._text))
        buffer[:count] = self._text[:count]
        del self._text[:count]
        return count


def is_event_file(path: Path) -> bool:
    """Whether the name is that of an event file, by which TensorBoard finds them, too."""
    return MARK in path.name


def _lines(path: Path, source: IO[bytes] | Unpacker) -> Iterator[bytes]:
    number, place = 1, 0
    try:
        while head := _at_most(source, _HEAD):
            size = _LENGTH.unpack_from(_all(head, _HEAD))[0] + _CRC.size
            if size > _LARGEST:
                for start in range(0, size, _LARGEST):
                    part = min(_LARGEST, size - start)
                    _all(_at_most(source, part), part)
            else:
                data = _all(_at_most(source, size), size)[: -_CRC.size]
                for step, tag, value in scalars(data):
                    yield f"{MARK} {step} {tag.translate(_CONTROLS)} = {value!r}\n".encode()
            number, place = number + 1, place + _HEAD + size
    except ValueError as wrong:
        if place == 0:
            raise LogParseError(f"{path}: not an event file of TensorBoard: {wrong}") from None
        raise LogParseError(
            f"{path}: {wrong} in event {number}, at byte {place}; the events before it are read"
        ) from None


def _all(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise ValueError("the file ends")
    return data


def _at_most(source: IO[bytes] | Unpacker, size: int) -> bytes:
    parts = []
    while size and (part := source.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# A protobuf message `Event` of TensorBoard -> its scalars.
#
# The numbers of fields are those of tensorflow/core/util/event.proto, framework/summary.proto and
# framework/tensor.proto. TensorFlow 1 and torch store `simple_value`, TensorFlow 2 a tensor.

_STEP, _SUMMARY = 2, 5
_VALUE = 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_DTYPE, _CONTENT = 1, 4
# A dtype -> the format of a number, and the field of a tensor that is not in `tensor_content`.
_DTYPES: dict[object, tuple[str, int]] = {1: ("<f", 5), 2: ("<d", 6)}
_FLOAT, _DOUBLE = _DTYPES[1][0], _DTYPES[2][0]
# A float has at least 6 significant digits, and 9 determine it.
_DIGITS = range(6, 10)
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def scalars(event: bytes) -> Iterator[tuple[int, str, float]]:
    """Yield step, tag and value of each scalar; the step may be negative.

    Raises:
        ValueError: the message is damaged.
    """
    found = list(_fields(event))
    step = next((value for number, value in reversed(found) if number == _STEP), 0)
    step = step if isinstance(step, int) else 0
    step -= (1 << 64) if step >> 63 else 0
    for summary in (value for number, value in found if number == _SUMMARY):
        for number, field in _fields(summary) if isinstance(summary, bytes) else ():
            if number == _VALUE and isinstance(field, bytes):
                tag, value = _scalar(field)
                if value is not None:
                    yield step, tag, value


def _scalar(message: bytes) -> tuple[str, float | None]:
    """Return the tag of a value, and the number: None unless it is one, or a tensor of one."""
    tag, value = "", None
    for number, field in _fields(message):
        if not isinstance(field, bytes):
            continue
        if number == _TAG:
            tag = field.decode("utf-8", "replace")
        elif number == _SIMPLE:
            value = _number(_FLOAT, field)
        elif number == _TENSOR:
            stated = dict(_fields(field))
            form, place = _DTYPES.get(stated.get(_DTYPE), ("", 0))
            stored = stated.get(_CONTENT) or stated.get(place)
            value = _number(form, stored) if form and isinstance(stored, bytes) else None
    return tag, value


def _number(form: str, stored: bytes) -> float | None:
    if len(stored) != struct.calcsize(form):
        return None
    value: float = struct.unpack(form, stored)[0]
    if form == _DOUBLE or value != value or value in (float("inf"), float("-inf")):
        return value
    for digits in _DIGITS:
        shown = float(f"{value:.{digits}g}")
        # A number may be rounded up to infinity.
        with suppress(OverflowError):
            if struct.pack(_FLOAT, shown) == stored:
                return shown
    return value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and contents of each field.

    Raises:
        ValueError: the message is damaged.
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, place = _varint(message, place)
        elif kind in (_EIGHT, _FOUR):
            size = 8 if kind == _EIGHT else 4
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if place + size > len(message):
            raise ValueError("a field that is longer than its message")
        yield key >> 3, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(message[place : place + 10]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place + shift + 1
    raise ValueError("a number without an end")
