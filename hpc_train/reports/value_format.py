"""Values -> text: numbers, `--` for a missing one; texts of logs without control characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any

from hpc_train.base.metrics import POINT_METRICS

if TYPE_CHECKING:
    import pandas as pd


Row = Mapping[str, Any]
_WITH_LIMITS = tuple(metric.key for metric in POINT_METRICS if metric.limits == "object")
_RENAMED = {metric.key: metric.json_key for metric in POINT_METRICS if metric.json_key}


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one dict per row; NaN and NA become None, tuples become lists."""
    names = [str(name) for name in frame]
    # Column by column: iteration over the rows of 10,000 runs takes ten times as long.
    columns = [_plain_column(column) for _, column in frame.items()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def for_programs(row: Row) -> dict[str, Any]:
    """Return the row as it is written to files, with each flag as a text `code: detail`."""
    return {**row, "flags": [str(flag) for flag in row.get("flags") or ()]}


def nested(row: Row) -> dict[str, Any]:
    """Return the row with `x`, `x_low`, `x_high` as one `x: {value, low, high}`, or None."""
    limits = {f"{name}{end}" for name in _WITH_LIMITS for end in ("_low", "_high")}
    plain = {name: v for name, v in for_programs(row).items() if name not in limits}
    for name in _WITH_LIMITS:
        if row.get(name) is None:
            continue
        plain[name] = {
            "value": row[name],
            "low": row[f"{name}_low"],
            "high": row[f"{name}_high"],
        }
    renamed = {new: plain.pop(key) for key, new in _RENAMED.items()}
    return plain | renamed


def _plain_column(column: pd.Series[Any]) -> list[Any]:
    values = column.tolist()
    if column.dtype == object:
        values = [_plain(value) for value in values]
    if not column.hasnans:
        return values
    absent = column.isna().tolist()
    return [None if gone else value for value, gone in zip(values, absent, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value.item() if hasattr(value, "item") else value


ABSENT = "--"
# The resolution of clocks is a nanosecond; further digits differ between processors.
DIGITS = 9


def rounded(value: Any) -> Any:
    """Return a float rounded to nine significant digits; any other value unchanged."""
    if not isinstance(value, float) or value.is_integer() or not isfinite(value):
        return value
    return float(f"{value:.{DIGITS}g}")


def significant(value: float | None, digits: int = 4) -> str:
    """Return at least `digits` significant digits, without an exponent for large numbers."""
    if value is None or not isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:.{decimals}f}" if decimals < 10 else f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int, factor: float = 1) -> str:
    """Return value x factor with `decimals` decimals."""
    known = value is not None and isfinite(value * factor)
    return f"{value * factor:.{decimals}f}" if value is not None and known else ABSENT


def with_limits(
    row: Mapping[str, Any],
    name: str,
    decimals: int | None,
    factor: float = 1,
    *,
    limits: bool = True,
) -> str:
    """Return `3.95 [3.90, 4.01]`; only the value where there is no interval, or without `limits`.

    Without a number of decimals each is written with four significant digits.
    """
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    shown = _written(value, decimals, factor)
    ends = [_written(limit, decimals, factor) for limit in (low, high)]
    return f"{shown} [{', '.join(ends)}]" if limits and ABSENT not in (shown, *ends) else shown


def _written(value: float | None, decimals: int | None, factor: float) -> str:
    if value is None or decimals is not None:
        return fixed(value, decimals or 0, factor)
    return significant(value * factor)


def whole(value: float | None) -> str:
    """Return a count or a ratio with at most six significant digits."""
    return ABSENT if value is None or not isfinite(value) else f"{value:.6g}"


def level_word(confidence: float) -> str:
    """Return `98.33 %`, with enough digits that a level is never shown as 100 %."""
    digits = max(4, 1 - floor(log10(1 - confidence)))
    return f"{100 * confidence:.{digits}g} %"


def levels_word(rows: Sequence[Mapping[str, Any]], confidence: float) -> str:
    """Return the levels of the intervals of rows, `95 % to 98.33 %`; without any `confidence`."""
    levels = sorted({row["level"] for row in rows} - {None}) or [confidence]
    return " to ".join(dict.fromkeys(map(level_word, (levels[0], levels[-1]))))


def one_line(text: str) -> str:
    """Return the text on one line, each control character as its escape (`\\x1b`)."""
    words = " ".join(text.split())
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
