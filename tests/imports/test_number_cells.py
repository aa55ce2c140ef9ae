"""Messages on cells of hundreds of letters are short."""

from __future__ import annotations

import pytest

from hpc_train.imports.runs_from_table import number, whole

NINES = "9" * 40 + "… (400 letters)"
LONG = {
    "digits": ("9" * 400, f"{NINES} is too large for a measurement; at most 1e+100"),
    "digits and a unit": (
        "9" * 400 + "x" * 400,
        f"'{'9' * 40}… (800 letters)' has the unit '{'x' * 40}… (400 letters)'; write a number "
        "alone, the column is in s",
    ),
    "letters": ("?" * 400, f"'{'?' * 40}… (400 letters)' is not a number"),
    "comma": ("9," + "9" * 398, "9." + "9" * 38 + "… (400 letters) with a point"),
    "groups": (",".join(["999"] * 100) + "9", "(400 letters)"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_cell_is_shortened(name: str) -> None:
    text, message = LONG[name]
    with pytest.raises(ValueError, match=r"^.{0,200}$") as error:
        number(text, "s")
    assert message in str(error.value)


def test_a_long_count_is_shortened() -> None:
    with pytest.raises(ValueError, match=r"^1\.1{38}… \(90 letters\) must be a whole number"):
        whole("1." + "1" * 88, 1)
