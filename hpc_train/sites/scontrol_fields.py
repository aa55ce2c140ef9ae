"""Slurm's `Key=Value` lines, and its notation of numbers, times and sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpc_train.base.run_program import whole
from hpc_train.base.units import LARGEST_MIB, Duration, Memory

Fields = Mapping[str, str]

# A value may contain blanks (OS=Linux 6.1 #1 SMP) and other pairs (CfgTRES=cpu=8,mem=4000M).
_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=")
_SETTING = re.compile(r"^([A-Za-z]\w*)[ \t]*=(.*)$", re.MULTILINE)
_NOTHING = frozenset({"", "(null)", "N/A", "n/a", "NONE", "None"})


def records(text: str, first: str) -> tuple[Fields, ...]:
    """Return the lines of `scontrol show … --oneliner` that start with the key `first`."""
    return tuple(_record(line) for line in text.splitlines() if line.startswith(f"{first}="))


def settings(text: str) -> Fields:
    """Return the lines `Key = Value` of `scontrol show config`."""
    return {name: value.strip() for name, value in _SETTING.findall(text)}


def table(text: str) -> tuple[Fields, ...]:
    """Return the rows of `sacctmgr --parsable2`; its first line names the columns."""
    lines = [line.split("|") for line in text.splitlines() if "|" in line]
    if not lines:
        return ()
    heads, *rows = lines
    return tuple(dict(zip(heads, row, strict=False)) for row in rows if len(row) >= len(heads))


def word(record: Fields, key: str) -> str:
    """Return a value, empty for Slurm's notations of no value."""
    value = record.get(key, "").strip()
    return "" if value in _NOTHING else value


def words(record: Fields, key: str) -> tuple[str, ...]:
    """Return a list with commas; empty for ALL."""
    value = word(record, key)
    return () if value == "ALL" else tuple(part for part in value.split(",") if part)


def count(record: Fields, key: str) -> int | None:
    """Return a number; None for UNLIMITED and for other texts."""
    return whole(word(record, key))


def duration(record: Fields, key: str) -> Duration | None:
    """Return a time; None for UNLIMITED and for times beyond the supported range."""
    try:
        return Duration.parse(word(record, key))
    except ValueError:
        return None


def memory(record: Fields, key: str) -> Memory | None:
    """Return an amount of memory that Slurm gives in MiB."""
    size = count(record, key)
    return Memory(size) if size and size <= LARGEST_MIB else None


def tres(value: str) -> dict[str, int]:
    """Return `node=4,gres/gpu=16` as numbers; other values are left out."""
    pairs = (part.partition("=") for part in value.split(","))
    numbers = {name: whole(number) for name, _, number in pairs}
    return {name: number for name, number in numbers.items() if number is not None}


def _record(line: str) -> Fields:
    found = list(_KEY.finditer(line))
    ends = [match.start() for match in found[1:]] + [len(line)]
    return {
        match[1]: line[match.end() : end].strip() for match, end in zip(found, ends, strict=True)
    }
