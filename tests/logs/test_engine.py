"""The reading layer: any block size, with and without Hyperscan, one or two processes."""

import io
from collections.abc import Callable

import pytest

from hpc_train.logs import line as reading
from hpc_train.logs.line import Block, Find, Mark, Stream, blocks, dispatch, finder, turns

TEXT = (
    b"head one\r\n\none two\rtwo bar\r\rtwo\n\x00\xff one\n" + b"x" * 300 + b"one\nrow\n\nlast two"
)


class Two:
    literals = (b"two", b"row")
    wants_next = False


class Table:
    """Wants the two lines after its head."""

    literals = (b"head", b"one")

    def __init__(self) -> None:
        self.left = 0

    @property
    def wants_next(self) -> bool:
        return self.left > 0


Found = list[tuple[int, bytes, list[int]]]


def read(text: bytes, size: int, monkeypatch: pytest.MonkeyPatch) -> Found:
    def small(stream: Stream) -> object:
        return blocks(stream, size)

    monkeypatch.setattr(reading, "blocks", small)
    table, found = Table(), []
    for line, asked in dispatch(io.BytesIO(text), (Two(), table)):
        if 1 in asked:
            table.left = 2 if b"head" in line.raw else max(0, table.left - 1)
        found.append((line.number, line.raw, sorted(asked)))
    return found


def by_hand(text: bytes) -> Found:
    """Return the same, line by line."""
    found: Found = []
    left = 0
    for number, line in enumerate(text.split(b"\n"), start=1):
        for part in line.removesuffix(b"\r").split(b"\r"):
            asked = [0] if b"two" in part or b"row" in part else []
            if left or b"head" in part or b"one" in part:
                asked.append(1)
                left = 2 if b"head" in part else max(0, left - 1)
            if asked:
                found.append((number, part, asked))
    return found


def test_a_line_knows_what_was_found_on_it() -> None:
    table = Table()
    for line, _ in dispatch(io.BytesIO(TEXT), (Two(), table)):
        table.left = 1
        assert line.held == {one for one in (*Two.literals, *Table.literals) if one in line.raw}


@pytest.mark.parametrize("size", [700, 512, 400, 1 << 20])
def test_lines_do_not_depend_on_the_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(TEXT * 3, size, monkeypatch) == by_hand(TEXT * 3)


def test_a_pipe_gives_little_at_a_time() -> None:
    class Pipe(io.BytesIO):
        def readinto(self, buffer: object, /) -> int:
            assert isinstance(buffer, memoryview)
            return super().readinto(buffer[:3])

    assert b"".join(bytes(block.data[: block.end]) for block in blocks(Pipe(TEXT))) == TEXT


def test_a_long_line_is_cut_and_nothing_on_the_cut_is_lost() -> None:
    text = b"x" * 250 + b"@hpct" + b"x" * 10_000
    parts = [bytes(block.data[: block.end]) for block in blocks(io.BytesIO(text), 256)]
    assert sum(b"@hpct" in part for part in parts) == 1
    assert b"".join(parts) == text


def test_mark_says_where_the_last_whole_line_ends() -> None:
    mark = Mark()
    list(dispatch(io.BytesIO(b"one\n\ntwo"), (Two(),), None, mark))
    assert (mark.offset, mark.line, mark.end) == (5, 3, 8)


@pytest.mark.parametrize("text", [TEXT, TEXT * 50, b"", b"aaaa one", b"o"])
def test_hyperscan_finds_what_re_finds(text: bytes) -> None:
    pytest.importorskip("hyperscan")
    literals = (b"head", b"one", b"two", b"one two", b".+(\\", b"bar\r")
    view = memoryview(text)
    assert sorted(finder(literals)(view)) == sorted(turns(literals)(view))


@pytest.mark.parametrize("find", [finder, turns])
def test_of_some_literals_only_the_first_occurrence_is_listed(find: Callable[..., Find]) -> None:
    pytest.importorskip("hyperscan")
    found = find((b"one", b"two"), frozenset({b"two"}))(memoryview(b"two one two one"))
    assert found == [(2, 1), (6, 0), (14, 0)]


class Whole:
    literals = (b"bar", b"two")

    def __init__(self) -> None:
        self.seen: list[tuple[int, bytes]] = []

    def read_block(self, block: Block, number: int) -> None:
        self.seen.append((number, bytes(block.data[: block.end])))


def test_blocks_and_lines_are_read_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "blocks", lambda stream: blocks(stream, 16))
    text = b"none\nof these\none two\nbar\nrow\n" + b"." * 12 + b"\nrow bar\n"
    bars, rows = Whole(), Two()
    found = [
        (line.number, line.raw) for line, _ in dispatch(io.BytesIO(text), (rows,), whole=[bars])
    ]
    assert found == [(3, b"one two"), (5, b"row"), (7, b"row bar")]
    assert [number for number, _ in bars.seen] == [3, 7]
    assert [b"bar" in block or b"two" in block for _, block in bars.seen] == [True, True]
