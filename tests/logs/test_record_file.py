"""Records: packs give back what went in, and lines of CSV are those that `csv.writer` writes."""

import csv
import io
from itertools import count, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hpc_train.logs import record as record_module
from hpc_train.logs.formats.base import Hit
from hpc_train.logs.line import Line
from hpc_train.logs.read_log import Packer, pressed, unpressed
from hpc_train.logs.record import Record, csv_rows, is_record_file, packs_of
from hpc_train.reports.collect import records_text

WORDS = st.text('a," \n\r;é0%s', max_size=5)
COUNTS = st.one_of(st.none(), st.integers(0, 2**40))
RECORDS = st.builds(
    Record,
    run=WORDS,
    source=WORDS,
    line=st.integers(1, 2**40),
    parser=WORDS,
    metric=WORDS,
    value=st.floats(allow_nan=False),
    unit=WORDS,
    scope=st.sampled_from(["global", "per_rank"]),
    step=COUNTS,
    rank=COUNTS,
    node=st.one_of(st.none(), WORDS),
    steps=st.integers(1, 1000),
    message_size=COUNTS,
    variant=WORDS,
)


def written(records: list[Record], *, head: bool) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    if head:
        table.writerow(Record.__struct_fields__)
    table.writerows(map(attrgetter(*Record.__struct_fields__), records))
    return text.getvalue()


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=9))
def test_it_is_what_the_csv_module_writes(records: list[Record]) -> None:
    assert "".join(csv_rows(packs_of(records))) == written(records, head=False)
    assert "".join(records_text(packs_of(records), "csv")) == written(records, head=True)


@pytest.mark.parametrize(("name", "holds"), [("a.csv", True), ("a.log", False), ("a.json", False)])
def test_a_file_of_records_is_known_by_its_suffix_and_its_first_line(
    tmp_path: Path, name: str, holds: bool
) -> None:
    path = tmp_path / name
    path.write_text(written([], head=True))
    assert is_record_file(path) is holds


def one(line: int = 1, source: str = "a.log", value: float = 1.0, **more: Any) -> Record:
    fields: dict[str, Any] = {"run": "r", "parser": "p", "metric": "loss", "unit": "1"}
    return Record(source=source, line=line, value=value, scope="global", **fields, **more)


def test_hits_of_a_line() -> None:
    packer = Packer("r", "a.log")
    line = Line(b"[rank3]: x", 7)
    hits = [Hit("loss", 2.5, "global", 9, once="loss 9"), Hit("loss", 2.0, "global", 10, rank=None)]
    packer.add("p", line, hits)
    packer.add("p", line, hits[:1])
    pack = packer.taken()
    assert list(pack.records()) == [
        one(line=7, value=2.5, step=9, rank=3),
        one(line=7, value=2.0, step=10),
        one(line=7, value=2.5, step=9, rank=3),
    ]
    assert (len(pack.kinds), pack.once, len(packer)) == (1, {0: "loss 9", 2: "loss 9"}, 0)


def test_the_host_in_the_prefix_of_a_line_is_that_of_its_values() -> None:
    packer = Packer("r", "a.log")
    for number, name in enumerate((b"n1", b"n2", b"n1"), start=1):
        packer.add("p", Line(b"[%s:0] x" % name, number), [Hit("loss", 1.0, "global")])
    assert [record.node for record in packer.taken().records()] == ["n1", "n2", "n1"]


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
