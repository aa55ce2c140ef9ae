"""Numbers of different rows, in order of appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.tables.row_codes import codes, firsts, numbered_in_order

CODES = st.lists(st.integers(-1, 6), max_size=20)


@given(CODES)
def test_codes_are_numbered_in_order_of_appearance(numbers: list[int]) -> None:
    found, used = numbered_in_order(np.array(numbers, dtype=np.int8), 7)
    seen = list(dict.fromkeys(number for number in numbers if number >= 0))
    assert used.tolist() == seen
    assert found.tolist() == [seen.index(number) if number >= 0 else -1 for number in numbers]


@given(st.lists(st.sampled_from([0, 1, 10**12]), min_size=1, max_size=9))
def test_sparse_numbers_count_as_dense_ones(numbers: list[int]) -> None:
    column: Any = pd.Series(numbers, dtype="int64")
    found = codes([column])
    seen = list(dict.fromkeys(numbers))
    assert found.tolist() == [*map(seen.index, numbers)]
    assert [numbers[place] for place in firsts(found)] == seen
