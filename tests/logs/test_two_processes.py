"""Many files: read by two processes, with the same result and memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.logs import collect as collecting
from hpc_train.logs.collect import collect, logs_of, records_of, wanted
from hpc_train.logs.read_log import Log, ParseStats, Reading, Wanted, unpressed, whole
from hpc_train.logs.record_index import Index


@pytest.fixture
def rank_files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"rank-{rank}.out" for rank in range(7)]
    for rank, path in enumerate(paths):
        text = b"".join(b'@hpct {"step":%d,"loss":%d}\nnoise\n' % (n, rank) for n in range(200))
        path.write_bytes(text + b"@hpct {\n")
    paths[4].unlink()
    return paths


def test_two_processes_read_what_one_reads(
    rank_files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    look, logs = wanted("auto"), logs_of("r", rank_files)
    one, two = ParseStats(), ParseStats()
    alone = list(records_of(logs, look, one))
    monkeypatch.setattr(collecting, "_LOT", 9000)
    readings = list(collecting.spread(logs, [5000] * len(logs), look))
    packs = [unpressed(pack) for reading in readings for pack in reading.packs]
    assert [record for pack in packs for record in pack.records()] == alone
    for reading in readings:
        two.add(reading.census)
    assert two == one
    assert (len(two.failed), len(two.damaged)) == (1, 6)


def test_files_that_the_index_does_not_know_are_read_by_two_processes(
    rank_files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    look, logs = wanted("auto"), logs_of("r", rank_files)
    alone = list(records_of(logs, look, ParseStats()))
    first = Index(look)
    list(records_of(logs[2:4], look, ParseStats(), first))
    spreads: list[list[Log]] = []
    real = collecting.spread

    def spread(unread: list[Log], sizes: list[int], look: Wanted) -> Iterator[Reading]:
        spreads.append(unread)
        return real(unread, sizes, look)

    monkeypatch.setattr(collecting, "worth_it", lambda sizes: len(sizes) > 1)
    monkeypatch.setattr(collecting, "spread", spread)
    index, census = Index(look, first.content() or b""), ParseStats()
    assert list(records_of(logs, look, census, index)) == alone
    assert spreads == [[*logs[:2], *logs[4:]]]
    assert list(census.failed) == [logs[4].source]
    again = Index(look, index.content() or b"")
    assert list(records_of(logs, look, ParseStats(), again)) == alone
    assert len(spreads) == 1


def test_two_processes_only_for_much() -> None:
    assert not collecting.worth_it([])
    assert not collecting.worth_it([100_000] * 100)
    # One file is read by one process.
    assert not collecting.worth_it([10**9, 1000])


def test_file_that_is_not_there_is_noted(tmp_path: Path) -> None:
    reading = whole(logs_of("r", [tmp_path / "none"])[0], wanted("auto"))
    assert (reading.packs, len(reading.census.failed)) == ([], 1)


MEASURE = """
import sys
from pathlib import Path
from hpc_train.logs.collect import collect
print(sum(1 for _ in collect("r", [Path(sys.argv[1])])))
# ru_maxrss would count what the parent had when it forked.
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    log = tmp_path / "a.out"
    block = (b"noise of some length, with words\n" * 20 + b'@hpct {"step":1,"loss":2}\n') * 1500
    with log.open("wb") as file:
        for _ in range(30):
            file.write(block)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, log], capture_output=True, text=True, check=True
    )
    count, kib = map(int, done.stdout.split())
    assert count == 45_000
    assert kib < 200_000


def test_collect_is_the_same_for_a_file_and_its_folder(rank_files: list[Path]) -> None:
    folder = rank_files[0].parent
    found = [path for path in rank_files if path.exists()]
    assert list(collect("r", [folder], root=folder)) == list(collect("r", found, root=folder))
