"""Records <-> packs of bytes: what one log states, in a twentieth of the room, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import msgspec
import zstandard

from hpc_train.model.record import Record

# A record, and the key of what counts once in a run ("" for most).
Keyed = tuple[Record, str]

# Enough to press well; as objects, so many take a megabyte.
_LOT = 4096
_LEVEL = 1


class Pack(msgspec.Struct, array_like=True):
    """Some records as columns; `kinds` hold what many of them have in common.

    `once`: the keys of those that have one, by their place.
    """

    kinds: list[Record]
    kind: list[int]
    line: list[int]
    value: list[float]
    step: list[int | None]
    rank: list[int | None]
    once: dict[int, str]


_OWN = frozenset({"line", "value", "step", "rank"})
_kind = attrgetter(*(name for name in Record.__struct_fields__ if name not in _OWN))
_decode = msgspec.msgpack.Decoder(Pack).decode


def packed(records: Iterable[Keyed], packs: list[bytes]) -> Iterator[Keyed]:
    """Yield records, and add packs of them to `packs` meanwhile."""
    lot: list[Keyed] = []
    for one in records:
        lot.append(one)
        yield one
        if len(lot) == _LOT:
            packs.append(_pack(lot))
            lot = []
    if lot:
        packs.append(_pack(lot))


def unpacked(packs: Iterable[bytes]) -> Iterator[Keyed]:
    """Yield the records of packs, one pack after the other."""
    replace = msgspec.structs.replace
    for content in packs:
        pack = _decode(zstandard.decompress(content))
        kinds, once = pack.kinds, pack.once.get
        columns = zip(pack.kind, pack.line, pack.value, pack.step, pack.rank, strict=True)
        for place, (kind, line, value, step, rank) in enumerate(columns):
            record = replace(kinds[kind], line=line, value=value, step=step, rank=rank)
            yield record, once(place, "")


def _pack(lot: list[Keyed]) -> bytes:
    # By a tuple: to make the record of each kind once only takes half the time.
    numbers: dict[Any, int] = {}
    records = [record for record, _ in lot]
    kind = [numbers.setdefault(_kind(record), len(numbers)) for record in records]
    firsts = dict(zip(reversed(kind), reversed(records), strict=True))
    pack = Pack(
        kinds=[_blank(firsts[number]) for number in range(len(numbers))],
        kind=kind,
        line=[record.line for record in records],
        value=[record.value for record in records],
        step=[record.step for record in records],
        rank=[record.rank for record in records],
        once={place: key for place, (_, key) in enumerate(lot) if key},
    )
    return zstandard.compress(msgspec.msgpack.encode(pack), _LEVEL)


def _blank(record: Record) -> Record:
    return msgspec.structs.replace(record, line=0, value=0.0, step=None, rank=None)
