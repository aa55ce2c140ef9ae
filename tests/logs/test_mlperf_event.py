"""An event says the same whichever decoder reads it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from hpc_train.logs.formats.base import Unreadable
from hpc_train.logs.formats.mlperf import Event, events_in

WORDS = st.text('ab_é"\\ \n', max_size=6)
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=5,
)
TIMES = st.integers(0, 2**53)


@settings(deadline=None)
@given(WORDS, TIMES, VALUES, st.dictionaries(WORDS, VALUES, max_size=3), st.booleans())
def test_alone_and_before_other_text(
    key: str, time_ms: int, value: object, metadata: dict[str, object], ascii_only: bool
) -> None:
    body = {"key": key, "time_ms": time_ms, "value": value, "metadata": metadata, "more": value}
    line = f":::MLLOG {json.dumps(body, ensure_ascii=ascii_only)}"
    # What follows the object is for `json`, as it always was.
    alone, before = list(events_in(line)), list(events_in(f"{line} and more"))
    assert alone == before == [Event(key, float(time_ms), value, metadata)]


@pytest.mark.parametrize(
    "text",
    ['{"key": "a", "time_ms": 1', '{"time_ms": 1}', '{"key": 1, "time_ms": 1}', '{"key": "a"}'],
)
def test_what_is_no_event(text: str) -> None:
    assert [type(event) for event in events_in(f":::MLLOG {text}")] == [Unreadable]


def test_numbers_that_only_one_decoder_takes() -> None:
    (event,) = events_in(':::MLLOG {"key": "a", "time_ms": 1, "value": NaN}')
    assert isinstance(event, Event)
    assert event.value != event.value
