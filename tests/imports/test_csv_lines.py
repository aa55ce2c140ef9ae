"""What numpy says of the lines of a text is what Python says of each line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.imports import csv_lines
from hpc_train.imports.csv_lines import begins_with, line_ends, line_of_other_length

TEXT = st.text("a,;\n #é", max_size=30).map(str.encode)
MARK = re.compile(rb"[ #\n\x80-\xff]")


@pytest.fixture(autouse=True, params=[1, 3, 1 << 22])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_lines, "_BLOCK", request.param)


@given(TEXT)
def test_lines_end_at_line_feeds(text: bytes) -> None:
    assert line_ends(text).tolist() == [found.start() for found in re.finditer(b"\n", text)]


@given(TEXT)
def test_the_first_bytes_of_lines_are_looked_up(text: bytes) -> None:
    lines = text.split(b"\n")
    wanted = not lines[-1] or any(not line or bool(MARK.match(line)) for line in lines)
    assert begins_with(text, line_ends(text), MARK) is wanted


@given(TEXT, st.integers(0, 2))
def test_the_first_line_with_another_number_of_cells_is_found(text: bytes, between: int) -> None:
    counts = [line.count(b",") for line in text.split(b"\n")]
    wanted = next((line for line, count in enumerate(counts) if count != between), None)
    assert line_of_other_length(text, line_ends(text), ",", between) == wanted
