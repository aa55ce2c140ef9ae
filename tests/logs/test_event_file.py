"""Event files of TensorBoard: read as they are stored, and up to a cut."""

import io
import struct
from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.logs.collect import collect, foreign_runs
from hpc_train.logs.log_file import EventLines, scalars
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.record import Record

# Written by the package tensorboard 2.20: 2-nodes with simple_value, 4-nodes with tensors.
WRITTEN = Path(__file__).parents[2] / "examples" / "tensorboard"
(TWO,) = (WRITTEN / "2-nodes").iterdir()
(FOUR,) = (WRITTEN / "4-nodes").iterdir()
NAME = "events.out.tfevents.1.node.2.0"


def stored(path: Path) -> tuple[list[Record], ParseStats]:
    stats = ParseStats()
    return list(collect("run", [path], census=stats)), stats


def values(path: Path, metric: str) -> list[tuple[int | None, float]]:
    return [(one.step, one.value) for one in stored(path)[0] if one.metric == metric]


@pytest.mark.parametrize(("path", "first"), [(TWO, 0.5), (FOUR, 0.26)], ids=["simple", "tensor"])
def test_scalars_are_the_numbers_that_were_logged(path: Path, first: float) -> None:
    # A float of 32 bits is shown as the number that it was made from.
    assert [step for step, _ in values(path, "step_time")] == list(range(6))
    assert [value for _, value in values(path, "step_time")] == pytest.approx(
        [first + number / 1000 for number in range(6)], rel=1e-12
    )
    assert [value for _, value in values(path, "loss")] == [2.5, 2.4, 2.3, 2.2, 2.1, 2.0]
    assert [value for _, value in values(path, "accuracy")] == [0.61] * 6


def lines_until_damage(raw: bytes) -> tuple[int, str]:
    """Return how many scalars are read, and what is said about the rest."""
    lines, text = EventLines(Path(NAME), io.BytesIO(raw)), bytearray()
    # A small buffer, which no line fits into.
    buffer = bytearray(7)
    try:
        while count := lines.readinto(memoryview(buffer)):
            text += buffer[:count]
    except LogParseError as damage:
        return text.count(b"\n"), damage.message
    return text.count(b"\n"), ""


def test_a_file_is_read_up_to_where_it_was_cut() -> None:
    raw = TWO.read_bytes()
    found = [lines_until_damage(raw[:size]) for size in range(len(raw) + 1)]
    counts = [count for count, _ in found]
    assert counts == sorted(counts)
    assert set(counts) == {0, 4, 8, 12, 16, 20, 24}
    complete = [size for size, (_, said) in enumerate(found) if not said]
    # The empty file, that of the version alone, and one for each of the six steps.
    assert len(complete) == 8
    assert complete[-1] == len(raw)
    assert found[-2][1] == (
        f"{NAME}: the file ends in event 7, at byte {complete[-2]}; the events before it are read"
    )


@pytest.mark.parametrize("content", [b"", b"\0", b"no event file at all", bytes(range(256))])
def test_no_event_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / NAME
    path.write_bytes(content)
    if not content:
        assert stored(path)[0] == []
        return
    with pytest.raises(LogParseError, match="not an event file of TensorBoard"):
        stored(path)


def test_files_of_a_folder_are_one_run(tmp_path: Path) -> None:
    for part in ("one", "two"):
        (tmp_path / part).mkdir()
        for number in range(2):
            (tmp_path / part / f"events.out.tfevents.{number}.node.1.0").write_bytes(b"")
    found = foreign_runs([tmp_path])
    assert {run: len(logs) for run, logs in found.items()} == {"one": 2, "two": 2}
    # A job that writes event files usually prints the same values.
    (tmp_path / "one" / "train.log").write_text("x")
    assert list(foreign_runs([tmp_path])) == ["train.log"]


def field(number: int, kind: int, content: bytes) -> bytes:
    size = bytes([len(content)]) if kind == 2 else b""
    return bytes([number << 3 | kind]) + size + content


def event(value: bytes) -> bytes:
    return field(2, 0, b"\x07") + field(5, 2, field(1, 2, field(1, 2, b"x") + value))


def test_kinds_of_numbers() -> None:
    single, double = struct.pack("<f", 0.1), struct.pack("<d", 0.1)
    tensors = {
        "content": field(1, 0, b"\1") + field(4, 2, single),
        "packed": field(1, 0, b"\1") + field(5, 2, single),
        "unpacked": field(1, 0, b"\1") + field(5, 5, single),
        "double": field(1, 0, b"\2") + field(6, 2, double),
    }
    for tensor in tensors.values():
        assert list(scalars(event(field(8, 2, tensor)))) == [(7, "x", 0.1)]
    # Two numbers, a text, and an image are no scalars.
    others = [
        field(8, 2, field(1, 0, b"\1") + field(4, 2, single * 2)),
        field(8, 2, field(1, 0, b"\7") + field(8, 2, b"abcd")),
        field(4, 2, b"\0" * 40),
    ]
    assert [list(scalars(event(other))) for other in others] == [[], [], []]


@pytest.mark.parametrize(
    "message",
    [b"\x12", b"\x12\x05ab", b"\x13", b"\xff" * 11, b"\x0d\0", b"\x2a\x02\x0a\x09"],
)
def test_a_damaged_message(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"field|number"):
        list(scalars(message))


@pytest.mark.parametrize("tag", ["train/loss", "Loss/train", "lm loss"])
def test_a_loss_that_is_no_number(tmp_path: Path, tag: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(f"tfevents 1 {tag} = 0.5\ntfevents 2 {tag} = nan\ntfevents 3 speed = 5.0\n")
    assert [one.metric for one in collect("run", [path])] == ["loss", "not_finite"]


def test_a_tag_is_one_line() -> None:
    tag = b"lr\n\x1b[2J\xe2\x80\xa8x = 9.0"
    message = field(5, 2, field(1, 2, field(1, 2, tag) + field(2, 5, struct.pack("<f", 0.5))))
    head = struct.pack("<Q", len(message))
    raw = head + bytes(4) + message + bytes(4)
    lines = bytearray(99)
    count = EventLines(Path(NAME), io.BytesIO(raw)).readinto(memoryview(lines))
    assert lines[:count].decode() == "tfevents 0 lr  [2J x = 9.0 = 0.5\n"


def test_large_data_are_skipped() -> None:
    head = struct.pack("<Q", 3 << 20)
    graph = head + bytes(4) + b"\xff" * (3 << 20) + b"1234"
    assert lines_until_damage(graph + TWO.read_bytes()) == (24, "")
    assert lines_until_damage(TWO.read_bytes() + graph[:-1])[0] == 24
    assert "the file ends in event 8" in lines_until_damage(TWO.read_bytes() + graph[:-1])[1]


def test_a_negative_step() -> None:
    message = field(2, 0, b"\xff" * 9 + b"\x01") + event(field(2, 5, struct.pack("<f", 1)))[2:]
    assert list(scalars(message)) == [(-1, "x", 1.0)]
