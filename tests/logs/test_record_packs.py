"""Packs: whatever records go in, just these come out, in small pieces."""

from __future__ import annotations

from itertools import count, islice
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hpc_train.logs import record as record_module
from hpc_train.logs.read_log import pressed, unpressed
from hpc_train.logs.record import Record, Scope, packs_of

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


def one(line: int = 1, source: str = "a.log", value: float = 1.0, **more: Any) -> Record:
    fields: dict[str, Any] = {"run": "r", "parser": "p", "metric": "loss", "unit": "1"}
    return Record(source=source, line=line, value=value, scope="global", **fields, **more)


@given(st.lists(RECORDS, max_size=30))
def test_out_comes_what_went_in(records: list[Record]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_module, "LOT", 7)
        found = [pressed(pack) for pack in packs_of(records)]
    assert [record for pack in map(unpressed, found) for record in pack.records()] == records


def test_a_pack_is_of_one_file_and_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "LOT", 7)
    sources = ["a"] * 10 + ["b"] * 3
    found = list(packs_of(one(source=source) for source in sources))
    assert [len(pack) for pack in found] == [7, 3, 3]


def test_packs_are_filled_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "LOT", 2)
    endless = (one(line=line) for line in count(1))
    assert [list(pack.line) for pack in islice(packs_of(endless), 2)] == [[1, 2], [3, 4]]


@given(st.lists(RECORDS, min_size=1, max_size=9), st.data())
def test_some_are_left_out(records: list[Record], data: st.DataObject) -> None:
    pack = next(packs_of(records))
    pack.once = {place: str(place) for place in range(0, len(pack), 2)}
    out = data.draw(st.sets(st.integers(0, len(pack) - 1)))
    kept = [place for place in range(len(pack)) if place not in out]
    left = pack.without(out)
    assert list(left.records()) == [records[place] for place in kept]
    assert [left.once.get(new, "") for new in range(len(left))] == [
        "" if old % 2 else str(old) for old in kept
    ]
