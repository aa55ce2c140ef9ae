"""Real logs that were cut, shuffled, doubled or written over: no crash, and nothing invented."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.diagnosis.diagnose_runs import diagnose
from hpc_train.logs.collect import collect
from hpc_train.logs.read_log import ParseStats
from tests.known.folder import Row, rows
from tests.known.stated import NOWHERE

Damage = Callable[[bytes, random.Random], bytes]
# Of longer logs, parts: the whole of all of them would take a minute.
MOST = 60_000


def _part(text: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(max(1, len(text) - MOST))
    return text[start : start + MOST]


def _shuffled(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


def _cut(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join(line[: chance.randrange(len(line) + 1)] for line in lines)


def _interleaved(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines()
    ends = (chance.choice((b"\n", b"\n", b"", b"\r")) for _ in lines)
    return b"".join(line + end for line, end in zip(lines, ends, strict=True))


def _overwritten(text: bytes, chance: random.Random) -> bytes:
    letters = bytearray(text)
    for _ in range(len(letters) // 200):
        letters[chance.randrange(len(letters))] = chance.randrange(256)
    return bytes(letters)


DAMAGES: tuple[Damage, ...] = (
    lambda text, _: text,
    lambda text, _: text + text,
    lambda text, _: text[: len(text) // 2],
    _shuffled,
    _cut,
    _interleaved,
    _overwritten,
)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.file)
def test_damage_never_crashes_or_adds_records(row: Row, tmp_path: Path) -> None:
    log = tmp_path / row.path.name
    chance = random.Random(row.file)  # noqa: S311
    text = _part(row.path.read_bytes(), chance)
    for damage in DAMAGES:
        log.write_bytes(damage(text, chance) or b"\n")
        # Lines that ran together still hold a record each.
        _check(log, max(_lines(log.read_bytes()), _lines(text)))
        assert diagnose([str(log)], NOWHERE)[0].diagnosis.outcome in (
            "success",
            "failed",
            "unknown",
        )


def _check(log: Path, most: int) -> None:
    """Assert that no metric and variant has more records than there are, or were, lines."""
    try:
        found = list(collect("r", [log], census=ParseStats()))
    except LogParseError:
        return
    assert all(1 <= one.line <= most for one in found)
    counts = Counter((one.metric, one.variant, one.scope) for one in found)
    assert max(counts.values(), default=0) <= most


def _lines(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") + 1
