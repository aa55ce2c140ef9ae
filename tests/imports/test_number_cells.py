"""The number in a cell, and the reason why a cell has none."""

from __future__ import annotations

import pytest

from hpc_train.imports.number_cells import number


@pytest.mark.parametrize(("text", "value"), [("1e100", 1e100), ("-1e100", -1e100), (" .5", 0.5)])
def test_a_number_of_either_sign_is_at_most_1e100(text: str, value: float) -> None:
    assert number(text, "s") == value


@pytest.mark.parametrize("text", ["1.1e100", "-1.1e100", "1e309", "-1e309"])
def test_a_larger_number_of_either_sign_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="too large for a measurement; at most 1e"):
        number(text, "s")
