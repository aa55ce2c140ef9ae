"""Several streams of hits -> one."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from hpc_train.records.parsers.base import Hit, Unreadable
from hpc_train.records.parsers.merge import in_order


def hits(offsets: list[int]) -> Iterator[Hit | Unreadable]:
    return (Hit(offset, "loss", 1.0, "global") for offset in offsets)


def test_nothing_gives_nothing() -> None:
    assert list(in_order([])) == []
    assert list(in_order([hits([]), hits([])])) == []


@given(st.lists(st.lists(st.integers(0, 9)).map(sorted), max_size=4))
def test_order_of_offset_then_of_stream(streams: list[list[int]]) -> None:
    found = [(hit.offset, number) for number, hit in in_order([hits(each) for each in streams])]
    assert found == sorted(
        (offset, number) for number, stream in enumerate(streams) for offset in stream
    )


def test_looks_one_hit_ahead_at_most() -> None:
    taken = []

    def watched() -> Iterator[Hit | Unreadable]:
        for hit in hits([1, 2, 3, 9]):
            taken.append(hit.offset)
            yield hit

    merged = in_order([watched(), hits([5])])
    assert next(merged)[1].offset == 1
    assert taken == [1]
