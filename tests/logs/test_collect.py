"""Files to records: order, line numbers, sources, compressed and damaged files."""

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from hpc_train.base.errors import UnknownNameError
from hpc_train.logs.collect import collect
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.record import Record

EVENT = b'@hpct {"step":1,"step_time":0.5}\n'
PLUG_IN = b"""
from hpc_train.logs.formats.base import Hit, Unreadable

class Ours:
    title, sample, states = "ours", "ours 300 W", {"power": "per_rank"}
    literals = (b"ours",)
    wants_next = False

    def read(self, line):
        if line.text == "ours":
            yield Unreadable()
        else:
            yield Hit("power", 300.0, "per_rank", unit="W")
"""


def write(path: Path, text: bytes) -> Path:
    path.write_bytes(text)
    return path


def lines(records: list[Record]) -> list[tuple[str, int]]:
    return [(record.source, record.line) for record in records]


def test_record_says_everything(tmp_path: Path) -> None:
    log = write(tmp_path / "rank-3.out", b"hello\n\n" + EVENT)
    (record,) = collect("run-1", [log], root=tmp_path)
    assert record == Record(
        run="run-1",
        source="rank-3.out",
        line=3,
        parser="events",
        metric="step_time",
        value=0.5,
        unit="s",
        scope="per_rank",
        step=1,
        rank=3,
    )


def test_files_in_order_of_their_name(tmp_path: Path) -> None:
    second = write(tmp_path / "b.out", EVENT)
    first = write(tmp_path / "a.out", b"\n" + EVENT)
    records = list(collect("r", [second, first, second], root=tmp_path))
    assert lines(records) == [("a.out", 2), ("b.out", 1)]


def test_of_a_folder_the_logs_lie_up_to_five_levels_below(tmp_path: Path) -> None:
    folder = tmp_path
    for level in range(1, 7):
        write(folder / f"{level}.out", EVENT)
        folder /= "below"
        folder.mkdir()
    found = {record.source for record in collect("r", [tmp_path], root=tmp_path)}
    assert {Path(source).name for source in found} == {f"{level}.out" for level in range(1, 6)}


def test_plug_in_takes_its_turn_among_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site"
    metadata = package / "ours-1.dist-info"
    metadata.mkdir(parents=True)
    write(metadata / "METADATA", b"Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    write(metadata / "entry_points.txt", b"[hpctrain.parsers]\nours = ours_parser:Ours\n")
    write(package / "ours_parser.py", PLUG_IN)
    monkeypatch.syspath_prepend(package)
    log = write(tmp_path / "rank-2.out", EVENT + b"ours 300 W\n" + EVENT + b"ours\n")
    census = ParseStats()
    records = list(collect("r", [log], root=tmp_path, census=census))
    assert [(record.line, record.parser) for record in records] == [
        (1, "events"),
        (2, "ours"),
        (3, "events"),
    ]
    assert (records[1].metric, records[1].unit, records[1].rank) == ("power", "W", 2)
    assert census.damaged == {"rank-2.out": 1}


def test_unknown_parser_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown parser 'event'; did you mean 'events'"):
        collect("r", [tmp_path / "a.out"], "event")


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.compress,
}


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("name", ["a.log", "a.log.{kind}"])
def test_packed_in_two_parts_whatever_its_name(tmp_path: Path, kind: str, name: str) -> None:
    parts = b"".join(map(PACKERS[kind], (EVENT * 2, b"\n" + EVENT)))
    log = write(tmp_path / name.format(kind=kind), parts)
    assert [record.line for record in collect("r", [log])] == [1, 2, 4]


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_what_stands_before_damage_counts(tmp_path: Path, kind: str) -> None:
    steps = (number * 2_654_435_761 % 2**40 for number in range(9_000))
    packed = PACKERS[kind](
        b"".join(b'@hpct {"step":%d,"step_time":0.5}\n' % step for step in steps)
    )
    log = write(tmp_path / f"a.{kind}", packed[: len(packed) * 3 // 4])
    census = ParseStats()
    assert len(list(collect("r", [log], census=census))) > 1000
    assert "cannot be read" in census.failed[log.as_posix()]


def test_one_of_several_files_cannot_be_read(tmp_path: Path) -> None:
    good = write(tmp_path / "a.out", EVENT)
    binary = write(tmp_path / "b.out", bytes(range(8)) * 1000 + b"\0" * 9000)
    gone = tmp_path / "c.out"
    census = ParseStats()
    records = list(collect("r", [good, binary, gone], root=tmp_path, census=census))
    assert lines(records) == [("a.out", 1)]
    assert set(census.failed) == {"b.out", "c.out"}


def test_a_pipe_on_a_descriptor_is_read() -> None:
    """What a shell makes of `<(zcat a.out.gz)`; a FIFO among files would wait for a writer."""
    reader, end = os.pipe()
    with os.fdopen(end, "wb") as stream:
        stream.write(b"\n" + EVENT)
    path = Path(f"/dev/fd/{reader}")
    assert lines(list(collect("r", [path]))) == [(str(path), 2)]
    os.close(reader)


def test_cut_lines_are_counted_and_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = write(tmp_path / "a.out", b'@hpct {"loss":\n' + EVENT + b'@hpct {"lo')
    census = ParseStats()
    records = list(collect("r", [log], root=tmp_path, census=census))
    assert lines(records) == [("a.out", 2)]
    assert census.damaged == {"a.out": 2}
    assert "a.out: 2 lines are truncated, overwritten or without a number" in caplog.text
