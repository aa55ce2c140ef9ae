"""Numbers of different rows, in order of appearance or of their keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.tables.row_codes import codes, firsts, packed

ROWS = st.lists(st.tuples(st.sampled_from([0, 1, 10**12, None]), st.sampled_from("ab")), max_size=9)


@given(ROWS)
def test_codes_are_numbered_in_order_of_appearance(rows: list[tuple[Any, str]]) -> None:
    number: Any = pd.Series([row[0] for row in rows], dtype="Int64")
    letter: Any = pd.Series([row[1] for row in rows], dtype="category")
    found = codes([number, letter])
    seen = list(dict.fromkeys(rows))
    assert found.tolist() == [*map(seen.index, rows)]
    assert [rows[place] for place in firsts(found)] == seen


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-(2**62), 2**62)), max_size=9))
def test_packed_keys_sort_as_the_keys_do(rows: list[tuple[int, int]]) -> None:
    keys = np.array(rows, dtype=np.int64).reshape(-1, 2)
    places = sorted(set(rows))
    assert packed(*keys.T).tolist() == [*map(places.index, rows)]
