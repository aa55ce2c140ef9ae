"""The files of a checkpoint: synced to the disk, and checked later by size and CRC-32."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from hpc_train.atomicfile import write_atomic

_SUMS = ".crc32"
_BLOCK = 1 << 20


def write_sums(new: Path, rank: int, ranks: int) -> None:
    """Write size and CRC-32 of the files of this rank; rank 0 adds the metadata.

    The name of the file states the number of ranks, so that a missing one is noticed.
    """
    files = [*new.glob(f"__{rank}_*"), *(new.glob(".metadata") if rank == 0 else ())]
    lines = [f"{file.stat().st_size} {_crc32(file)} {file.name}\n" for file in files]
    write_atomic(new / f"{rank}-of-{ranks}{_SUMS}", "".join(lines).encode())


def damage(folder: Path, rank: int, ranks: int) -> str:
    """Return what is wrong with this rank's share of the files; empty if nothing is."""
    try:
        sums = sorted(folder.glob(f"*-of-*{_SUMS}"))
        writers = sums[0].name.removesuffix(_SUMS).partition("-of-")[2] if sums else "its"
        if str(len(sums)) != writers:
            return f"it has the checksums of {len(sums)} of {writers} ranks"
        entries = [line for file in sums for line in _lines(file)]
        for size, crc, name in entries[rank::ranks]:
            file = folder / name
            if file.stat().st_size != int(size):
                return f"{name} has {file.stat().st_size} bytes instead of {size}"
            if _crc32(file) != int(crc):
                return f"{name} has another CRC-32 than when it was written"
        return "" if (folder / ".metadata").exists() else "it has no metadata"
    except (OSError, ValueError) as error:
        return str(error)


def _lines(file: Path) -> Iterator[tuple[str, str, str]]:
    for line in file.read_text().splitlines():
        size, crc, name = line.split(" ", 2)
        yield size, crc, name


def _crc32(file: Path) -> int:
    crc = 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            crc = zlib.crc32(block, crc)
    return crc


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
