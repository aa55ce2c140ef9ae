"""The index: what is not read again, and when it counts as nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.logs import read_log, record_index
from hpc_train.logs.collect import logs_of, records_of, wanted
from hpc_train.logs.log_file import open_log
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.record import Pack, Record, packs_of
from hpc_train.logs.record_index import Index

EVENT = b'@hpct {"step":%d,"step_time":0.5}\n'
# In a process of its own: the peak of another test would count as this one's.
MEASURE = """
import sys
from pathlib import Path
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.collect import logs_of, records_of, wanted
from hpc_train.logs.record_index import Index
log, kept = map(Path, sys.argv[1:])
look = wanted("events")
index = Index(look, kept.read_bytes() if kept.exists() else b"")
print(sum(1 for _ in records_of(logs_of("r", [log]), look, ParseStats(), index)))
kept.write_bytes(index.content() or kept.read_bytes())
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


class Reads:
    """Counts where in its file each reading begins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offsets: list[int] = []

        def spy(path: Path, offset: int = 0) -> object:
            self.offsets.append(offset)
            return open_log(path, offset)

        monkeypatch.setattr(read_log, "open_log", spy)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def collect(
    log: Path, kept: bytes = b"", parser: str = "auto", *others: Path
) -> tuple[list[Record], bytes]:
    look, census = wanted(parser), ParseStats()
    index = Index(look, kept)
    records = list(records_of(logs_of("r", [log, *others]), look, census, index))
    return records, index.content() or kept


def steps(records: list[Record]) -> list[tuple[int, int | None]]:
    return [(record.line, record.step) for record in records]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_bytes(b"hello\n" + EVENT % 1)
    return path


def test_unchanged_file_is_not_read_again(log: Path, reads: Reads) -> None:
    first, kept = collect(log)
    again, same = collect(log, kept)
    assert again == first != []
    assert (same, reads.offsets) == (kept, [0])


def test_grown_file_is_read_again(log: Path, reads: Reads) -> None:
    _, kept = collect(log)
    with log.open("ab") as file:
        file.write(b"\n" + EVENT % 2)
    found, kept = collect(log, kept)
    assert steps(found) == [(2, 1), (4, 2)]
    assert reads.offsets == [0, 0]
    assert steps(collect(log, kept)[0]) == [(2, 1), (4, 2)]


def test_cut_line_at_the_end_is_read_again_when_it_is_whole(log: Path) -> None:
    with log.open("ab") as file:
        file.write((EVENT % 2)[:20])
    first, kept = collect(log)
    assert steps(first) == [(2, 1)]
    with log.open("ab") as file:
        file.write((EVENT % 2)[20:])
    assert steps(collect(log, kept)[0]) == [(2, 1), (3, 2)]


def test_file_that_was_written_anew_is_read_from_its_start(log: Path) -> None:
    _, kept = collect(log)
    log.write_bytes(EVENT % 7 + EVENT % 8 + EVENT % 9)
    assert steps(collect(log, kept)[0]) == [(1, 7), (2, 8), (3, 9)]


def test_file_that_could_not_be_read_is_read_again(log: Path, reads: Reads) -> None:
    (binary := log.with_name("b.log")).write_bytes(bytes(9000))
    collect(log, collect(log, b"", "auto", binary)[1], "auto", binary)
    assert reads.offsets == [0, 0, 0]


def test_file_of_the_same_size_is_known_by_its_time(log: Path) -> None:
    _, kept = collect(log)
    log.write_bytes(b"hello\n" + EVENT % 5)
    os.utime(log, ns=(1, 1))
    assert steps(collect(log, kept)[0]) == [(2, 5)]


def test_other_parsers_have_another_index(log: Path, reads: Reads) -> None:
    _, kept = collect(log)
    assert collect(log, kept, "book")[0] == []
    assert reads.offsets == [0, 0]


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_damaged_index_counts_as_nothing(log: Path, cut: int) -> None:
    first, kept = collect(log)
    assert collect(log, kept[:cut])[0] == first
    assert collect(log, kept[:30] + b"xxxx" + kept[34:])[0] == first


def test_file_that_has_gone_leaves_the_index(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.log"
    other.write_bytes(EVENT % 1)
    look = wanted("auto")
    both = Index(look)
    list(records_of(logs_of("r", [log, other]), look, ParseStats(), both))
    kept = both.content() or b""
    _, fewer = collect(log, kept)
    assert len(fewer) < len(kept)


@pytest.mark.process
def test_memory_does_not_grow_with_the_records(tmp_path: Path) -> None:
    log, kept = tmp_path / "a.log", tmp_path / "index"
    peaks = []
    for number in (1, 400_000):
        log.write_bytes(EVENT % 3 * number)
        kept.unlink(missing_ok=True)
        for _ in range(2):
            command = [sys.executable, "-c", MEASURE, str(log), str(kept)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            count, kib = map(int, done.stdout.split())
            assert count == number
            peaks.append(kib)
    assert max(peaks) < min(peaks) + 40_000
    assert kept.stat().st_size < 400_000 * 10


def test_records_come_while_the_file_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Read(Exception):
        pass

    def cut(*_: object) -> Iterator[Pack]:
        yield from packs_of([first] * 5000)
        raise Read

    first = collect(log)[0][0]
    monkeypatch.setattr(record_index, "read", cut)
    look = wanted("auto")
    found = records_of(logs_of("r", [log]), look, ParseStats(), Index(look))
    assert next(found) == first
    with pytest.raises(Read):
        deque(found, maxlen=0)


def test_any_other_bit_makes_the_index_nothing(log: Path, reads: Reads) -> None:
    first, kept = collect(log)
    for place in range(0, len(kept), 7):
        hurt = bytearray(kept)
        hurt[place] ^= 1
        assert collect(log, bytes(hurt))[0] == first
    assert set(reads.offsets) == {0}
    assert len(reads.offsets) == 1 + len(range(0, len(kept), 7))
