"""A TensorBoard event file -> a line of text for each scalar: `tfevents STEP TAG = VALUE`.

Its frames are those of TFRecord: the length of the data (8 bytes), the masked CRC-32C of the
length, the data, and theirs. The package tensorboard would add gRPC, protobuf and a web server.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from hpc_train.errors import LogParseError
from hpc_train.records.event_message import scalars

MARK = "tfevents"
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEAD = _LENGTH.size + _CRC.size
# Larger data are graphs, images or histograms, and are skipped in parts.
_LARGEST = 1 << 20
# A tag contains no line end, and no escape sequence of terminals.
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")


class _Source(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class EventLines:
    """A stream of the scalars in an event file; those before a damaged event are kept."""

    def __init__(self, path: Path, source: _Source) -> None:
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


def _lines(path: Path, source: _Source) -> Iterator[bytes]:
    number, place = 1, 0
    try:
        while head := _at_most(source, _HEAD):
            size, data = _frame(source, head)
            for step, tag, value in scalars(data):
                yield f"{MARK} {step} {tag.translate(_CONTROLS)} = {value!r}\n".encode()
            number, place = number + 1, place + _HEAD + size + _CRC.size
    except ValueError as wrong:
        if place == 0:
            raise LogParseError(f"{path}: not an event file of TensorBoard: {wrong}") from None
        raise LogParseError(
            f"{path}: {wrong} in event {number}, at byte {place}; the events before it are read"
        ) from None


def _frame(source: _Source, head: bytes) -> tuple[int, bytes]:
    """Return the size of the next data, and the data unless they are too large for scalars.

    Raises:
        ValueError: they are cut or damaged.
    """
    length = _LENGTH.unpack_from(_all(head, _HEAD))[0]
    if _masked(head[: _LENGTH.size]) != head[_LENGTH.size :]:
        raise ValueError("wrong checksum of a length")
    if length > _LARGEST:
        for start in range(0, length + _CRC.size, _LARGEST):
            _next(source, min(_LARGEST, length + _CRC.size - start))
        return length, b""
    data = _next(source, length)
    if _masked(data) != _next(source, _CRC.size):
        raise ValueError("wrong checksum")
    return length, data


def _next(source: _Source, size: int) -> bytes:
    return _all(_at_most(source, size), size)


def _all(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise ValueError("the file ends")
    return data


def _at_most(source: _Source, size: int) -> bytes:
    parts = []
    while size and (part := source.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _table() -> tuple[int, ...]:
    """Return the CRC-32C of each byte: polynomial 0x1EDC6F41, reflected."""
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return tuple(table)


_TABLE = _table()


def _masked(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return _CRC.pack((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF)
