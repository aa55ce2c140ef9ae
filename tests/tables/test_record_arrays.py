"""Arrays of records hold what the records hold, from packs, from frames and joined."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.model.record import Record, packs_of
from hpc_train.tables.parquet import records_frame
from hpc_train.tables.record_arrays import RecordArrays, joined_arrays, record_arrays

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
    unit=st.sampled_from(["1", "s"]),
    scope=st.sampled_from(["global", "per_rank"]),
    step=COUNTS,
    rank=COUNTS,
    node=st.one_of(st.none(), WORDS),
    steps=st.integers(1, 1000),
    message_size=COUNTS,
    variant=WORDS,
)


def rows(found: RecordArrays) -> list[str]:
    """Return the records as text, in which NaN is NaN."""
    return [repr(record) for record in found.records()]


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=20))
def test_they_are_records_again(records: list[Record]) -> None:
    assert rows(record_arrays(records)) == list(map(repr, records))


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=9), st.lists(RECORDS, max_size=9))
def test_parts_are_joined_in_order(one: list[Record], other: list[Record]) -> None:
    found = joined_arrays([record_arrays(one), record_arrays(other)])
    assert rows(found) == list(map(repr, [*one, *other]))


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=20))
def test_a_frame_holds_the_same_except_units(records: list[Record]) -> None:
    direct, frame = record_arrays(records), record_arrays(records_frame(packs_of(records)))
    units = [{"loss": "1", "step_time": "s"}[record.metric] for record in records]
    assert list(frame.unit.texts()) == units
    assert rows(frame._replace(unit=direct.unit)) == rows(direct)
