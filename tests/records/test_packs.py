"""Packs: whatever records go in, just these come out, in small pieces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.model.record import Record, Scope
from hpc_train.records import packs
from hpc_train.records.packs import Keyed, packed, unpacked

SCOPES: tuple[Scope, ...] = ("global", "per_gpu", "per_rank")
NUMBERS = st.integers(0, 2**63 - 1)
RECORDS = st.builds(
    Record,
    run=st.just("r"),
    source=st.sampled_from(["a.log", "b.log"]),
    line=NUMBERS,
    parser=st.sampled_from(["events", "book"]),
    metric=st.sampled_from(["loss", "busbw"]),
    value=st.floats(allow_nan=False),
    unit=st.sampled_from(["1", "GB/s"]),
    scope=st.sampled_from(SCOPES),
    step=st.none() | NUMBERS,
    rank=st.none() | NUMBERS,
    node=st.none() | st.sampled_from(["n1", "n2"]),
    steps=st.integers(1, 100),
    message_size=st.none() | NUMBERS,
    variant=st.sampled_from(["", "in_place"]),
)


@given(st.lists(st.tuples(RECORDS, st.sampled_from(["", "summary", "loss 3"])), max_size=30))
def test_out_comes_what_went_in(records: list[Keyed]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "_LOT", 7)
        found: list[bytes] = []
        assert list(packed(records, found)) == records
    assert len(found) == -(-len(records) // 7)
    assert list(unpacked(found)) == records


def test_packs_are_filled_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_LOT", 2)
    one = Record(
        run="r", source="a", line=1, parser="p", metric="loss", value=1, unit="1", scope="global"
    )
    found: list[bytes] = []

    def endless() -> Iterator[Keyed]:
        while True:
            yield one, ""

    records = packed(endless(), found)
    for _ in range(7):
        next(records)
    assert len(found) == 3
