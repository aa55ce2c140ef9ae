"""Lines of CSV are those that `csv.writer` writes."""

from __future__ import annotations

import csv
import io
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.model.record import Record, packs_of
from hpc_train.pipeline.collect import records_text
from hpc_train.records.record_file import csv_rows, is_record_file

WORDS = st.text('a," \n\r;é0%s', max_size=5)
COUNTS = st.one_of(st.none(), st.integers(0, 2**40))
RECORDS = st.builds(
    Record,
    run=WORDS,
    source=WORDS,
    line=st.integers(1, 2**40),
    parser=WORDS,
    metric=WORDS,
    value=st.floats(),
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
