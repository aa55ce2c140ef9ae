"""Objects that runs share are stored once, and are the same objects for each run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.model.shared_objects import each_once
from hpc_train.tables.row_codes import codes, firsts
from hpc_train.tables.run_columns import without_values
from hpc_train.tables.shared_objects import Shared, joined, shared

OBJECTS: list[Any] = [(), ("a",), ("a", "b"), {"gpu": "A100"}, {}, "text", ("a",), None]
PLACES = st.lists(st.integers(0, len(OBJECTS) - 1), max_size=9)


def of(places: list[int]) -> Shared[Any]:
    return Shared(OBJECTS, np.array(places, dtype=np.int64))


@given(PLACES)
def test_a_column_has_each_object_once_and_the_object_of_each_run(places: list[int]) -> None:
    column = pd.Series(of(places).column())
    wanted = [OBJECTS[place] for place in places]
    assert [None if own is np.nan else own for own in column] == wanted
    different = [own for place, own in enumerate(wanted) if own not in wanted[:place]]
    assert column.cat.categories.tolist() == [own for own in different if own is not None]


@given(PLACES, st.integers(0, 8))
def test_a_column_is_read_as_it_was_made(places: list[int], start: int) -> None:
    known = [place for place in places if OBJECTS[place] is not None]
    frame = pd.DataFrame({"own": of(known).column()}).iloc[start:]
    wanted = [OBJECTS[place] for place in known][start:]
    assert shared(frame["own"]).spread() == wanted
    first = [place for place, own in enumerate(wanted) if own not in wanted[:place]]
    assert each_once(frame["own"]) == [(place, wanted[place]) for place in first]


def test_objects_of_some_runs_are_replaced() -> None:
    found = of([0, 0, 1]).changed({1: ("b",), 2: ("c",)})
    assert found.spread() == [(), ("b",), ("c",)]
    assert found.changed({}) is found
    assert found.each(bool).tolist() == [False, True, True]
    assert joined([of([1, 0]), found]).spread() == [("a",), (), (), ("b",), ("c",)]


WHOLE = st.none() | st.integers(0, 3) | st.just(2**40)
ROW = st.tuples(WHOLE, st.none() | st.sampled_from([0.5, 1.5]), st.sampled_from(["", "a", "b"]))


@given(st.lists(ROW, min_size=1, max_size=12))
def test_rows_are_numbered_in_order_of_appearance(rows: list[tuple[Any, Any, str]]) -> None:
    order: dict[Any, int] = {}
    wanted = [order.setdefault(row, len(order)) for row in rows]
    whole, part, text = zip(*rows, strict=True)
    series = [
        pd.Series(pd.array(whole, dtype="Int64")),
        pd.Series(part, dtype="float64"),
        pd.Series(text),
    ]
    found = codes(series)
    assert found.tolist() == wanted
    assert codes([*series[:2], series[2].astype("category")]).tolist() == wanted
    assert firsts(found).tolist() == [wanted.index(number) for number in order.values()]


def test_a_column_without_a_value_is_one_number_in_memory() -> None:
    absent, some = np.full(9, np.nan), np.array([np.nan, 1.0])
    assert without_values(absent).strides == (0,)
    assert np.isnan(without_values(absent)).tolist() == [True] * 9
    assert without_values(some) is some
