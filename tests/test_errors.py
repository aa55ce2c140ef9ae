"""What messages of errors have in common."""

from __future__ import annotations

import pytest

from hpc_train.errors import nearest


@pytest.mark.parametrize(
    ("name", "offered"),
    [("1f1b", "1F1B"), ("pix", "PIX"), ("Torchrun", "torchrun"), ("torchrum", "torchrun")],
)
def test_the_nearest_word_is_found_in_any_case(name: str, offered: str) -> None:
    assert nearest(name, ["GPipe", "1F1B", "PIX", "torchrun"]) == f"; did you mean {offered!r}?"


def test_no_word_is_offered_that_is_not_near() -> None:
    assert nearest("xyz", ["GPipe", "1F1B"]) == ""
