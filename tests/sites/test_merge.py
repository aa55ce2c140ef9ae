"""One profile over another: what counts as said."""

from __future__ import annotations

from hpc_train.sites.merge import Part, overlay


def test_false_nothing_and_0_are_words_like_others() -> None:
    parent = {"a": True, "b": 5, "c": "x", "d": [1], "e": 1, "f": {"g": 1, "h": True}}
    child = {"a": False, "b": 0, "c": "", "d": [], "f": {"h": False}}
    whole = overlay(Part(parent, {"": "parent"}), Part(child, {"": "child"}))
    assert whole.values == {**child, "e": 1, "f": {"g": 1, "h": False}}
    assert whole.origins["a"] == whole.origins["f.h"] == "child"
    assert whole.origins["e"] == whole.origins["f.g"] == "parent"


def test_null_takes_a_value_away() -> None:
    whole = overlay(Part({"a": 1, "b": 2}, {"": "p"}), Part({"a": None}, {"": "c"}))
    assert whole.values == {"b": 2}
