"""A TensorBoard event file -> a line of text for each scalar: `tfevents STEP TAG = VALUE`.

Its frames are those of TFRecord: the length of the data (8 bytes), a checksum of the length, the
data, and their checksum; checksums are not read. The package tensorboard would add gRPC, protobuf
and a web server.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hpc_train.base.errors import LogParseError

if TYPE_CHECKING:
    from hpc_train.logs.log_file import Unpacker

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
