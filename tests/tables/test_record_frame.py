"""Records in columns say the same to tables as one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.model.record import Record
from hpc_train.tables.record_arrays import TEXTS, WHOLE, columns
from hpc_train.tables.record_columns import gathered
from hpc_train.tables.record_frame import as_records

WORDS = st.sampled_from(["", "a", "b", "rank 1"])
COUNTS = st.one_of(st.none(), st.integers(0, 2**40))
RECORDS = st.builds(
    Record,
    run=WORDS,
    source=WORDS,
    line=st.integers(1, 2**40),
    parser=WORDS,
    metric=st.sampled_from(["loss", "step_time"]),
    value=st.floats(),
    unit=st.just("1"),
    scope=st.sampled_from(["global", "per_rank"]),
    step=COUNTS,
    rank=COUNTS,
    node=st.one_of(st.none(), WORDS),
    steps=st.integers(1, 1000),
    message_size=COUNTS,
    variant=WORDS,
)


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=20))
def test_the_columns_are_those_of_the_records(records: list[Record]) -> None:
    one, other = columns(records), columns(gathered(iter(records)))
    for name in TEXTS:
        texts = [getattr(found, name) for found in (one, other)]
        assert [[[*text.names, None][code] for code in text.codes] for text in texts] == [
            [getattr(record, name) for record in records]
        ] * 2
    for name in (*WHOLE, "value"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


@settings(deadline=None)
@given(st.lists(RECORDS.filter(lambda record: record.value == record.value), max_size=9))
def test_they_are_records_again(records: list[Record]) -> None:
    again = as_records(gathered(iter(records)))
    assert [record.message_size for record in again] == [r.message_size for r in records]
    assert [(r.run, r.line, r.value, r.node) for r in again] == [
        (r.run, r.line, r.value, r.node) for r in records
    ]
