"""Objects of a column: each is listed once, with the first run that has it."""

from __future__ import annotations

from hpc_train.model.shared_objects import each_once


def test_each_object_is_listed_once_in_order() -> None:
    one, two, like_one = {"a": 1}, {"b": 2}, {"a": 1}
    assert [place for place, _ in each_once([two, one, two, one, like_one])] == [0, 1, 4]
    assert each_once([two, one])[0][1] is two
    assert each_once(()) == []
