"""A protobuf message `Event` of TensorBoard -> its scalars.

The numbers of fields are those of tensorflow/core/util/event.proto, framework/summary.proto and
framework/tensor.proto. TensorFlow 1 and torch store `simple_value`, TensorFlow 2 a tensor.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_STEP, _SUMMARY = 2, 5
_VALUE = 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_DTYPE, _CONTENT = 1, 4
# A dtype -> the format of a number, and the field of a tensor that is not in `tensor_content`.
_DTYPES = {1: ("<f", 5), 2: ("<d", 6)}
_FLOAT, _DOUBLE = _DTYPES[1][0], _DTYPES[2][0]
# A float has at least 6 significant digits, and 9 determine it.
_DIGITS = range(6, 10)
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def scalars(event: bytes) -> Iterator[tuple[int, str, float]]:
    """Yield step, tag and value of each scalar; the step may be negative.

    Raises:
        ValueError: the message is damaged.
    """
    step, summaries = 0, []
    for number, field in _fields(event):
        if number == _STEP and isinstance(field, int):
            step = field - (1 << 64) if field >> 63 else field
        elif number == _SUMMARY and isinstance(field, bytes):
            summaries.append(field)
    for summary in summaries:
        for number, field in _fields(summary):
            if number == _VALUE and isinstance(field, bytes):
                found = _scalar(field)
                if found is not None:
                    yield step, *found


def _scalar(message: bytes) -> tuple[str, float] | None:
    tag, value = "", None
    for number, field in _fields(message):
        if not isinstance(field, bytes):
            continue
        if number == _TAG:
            tag = field.decode("utf-8", "replace")
        elif number == _SIMPLE:
            value = _number(_FLOAT, field)
        elif number == _TENSOR:
            value = _in_tensor(field)
    return None if value is None else (tag, value)


def _in_tensor(message: bytes) -> float | None:
    """Return the value of a tensor of one float; None for any other tensor."""
    fields = dict(_fields(message))
    kind = fields.get(_DTYPE)
    if not isinstance(kind, int) or kind not in _DTYPES:
        return None
    form, place = _DTYPES[kind]
    stored = fields.get(_CONTENT) or fields.get(place)
    if not isinstance(stored, bytes) or len(stored) != struct.calcsize(form):
        return None
    return _number(form, stored)


def _number(form: str, stored: bytes) -> float | None:
    if len(stored) != struct.calcsize(form):
        return None
    value: float = struct.unpack(form, stored)[0]
    if form == _DOUBLE or value != value or value in (float("inf"), float("-inf")):
        return value
    shown = (float(f"{value:.{digits}g}") for digits in _DIGITS)
    return next((one for one in shown if _as_float(one) == stored), value)


def _as_float(value: float) -> bytes:
    """Return the bytes of a float; none if it is rounded up to infinity."""
    try:
        return struct.pack(_FLOAT, value)
    except OverflowError:
        return b""


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
