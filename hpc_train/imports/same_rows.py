"""Rows of tables -> an error if two of them hold one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hpc_train.errors import LogParseError
from hpc_train.model.result_columns import BATCH

# Two jobs with 2 % noise agree in six digits once in 10,000 pairs, and in two digits often.
_DIGITS = 6
# Digits in which the values of one job agree, whatever their unit.
_SAME = 12
# Settings, which repetitions share.
_GIVEN = frozenset({BATCH, "learning_rate", "samples", "steps"})


class RowContents(NamedTuple):
    """A row as it counts: its place, values in hpctrain's units, sizes, texts, its stated name.

    `written` are the numbers in the cells, `more` the texts of the other columns, which only
    distinguish jobs.
    """

    place: str
    values: Mapping[str, float]
    written: Mapping[str, float]
    sizes: Mapping[str, int]
    texts: Mapping[str, str]
    name: str | None
    more: Mapping[str, str]


def refuse_same_rows(rows: Sequence[RowContents]) -> None:
    """Refuse rows that hold the same values, in one table or in several, however they are written.

    Rows with different names are the same job if their results agree in six digits or more. Rows
    without a result do not count.

    Raises:
        LogParseError: two rows are the same; the message names both places.
    """
    first: dict[object, int] = {}
    for number, row in enumerate(rows):
        digits = _digits(row.written)
        if not digits:
            continue
        values = frozenset((name, f"{v:.{_SAME - 1}e}") for name, v in row.values.items())
        texts, more = frozenset(row.texts.items()), frozenset(row.more.items())
        key = (values, frozenset(row.sizes.items()), texts, more)
        # A row that is less precise is only compared with those of its name.
        keys: list[object] = [(*key, row.name)] + [key] * (digits >= _DIGITS)
        before = [first[one] for one in keys if one in first]
        if before:
            raise LogParseError(
                f"{row.place}: the same row as {rows[min(before)].place}: one job, not two "
                "repetitions",
                "remove it or, if they are two jobs, distinguish them by a column `repetition`",
            )
        first.update(dict.fromkeys(keys, number))


def _digits(written: Mapping[str, float]) -> int:
    """Return the significant digits of the most precise result of a row, at most six."""
    numbers = (abs(v) for name, v in written.items() if v and name not in _GIVEN)
    digits = (f"{v:.{_SAME - 1}e}".partition("e")[0].replace(".", "") for v in numbers)
    return min(max((len(own.rstrip("0")) for own in digits), default=0), _DIGITS)
