"""DataFrame -> plain rows: dicts with Python values, None for missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

RATIOS = (
    "speedup", "efficiency", "samples_per_second", "doubling", "karp_flatt",
    "time_to_train_speedup", "time_to_train_efficiency",
)  # fmt: skip


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one dict per row; NaN and NA become None, tuples become lists."""
    names = [str(name) for name in frame]
    # Column by column: iteration over the rows of 10,000 runs takes ten times as long.
    columns = [_plain_column(column) for _, column in frame.items()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with `x`, `x_low`, `x_high` as one `x: {value, low, high}`, or None."""
    limits = {f"{name}{end}" for name in RATIOS for end in ("_low", "_high")}
    plain = {name: value for name, value in row.items() if name not in limits}
    for name in RATIOS:
        if row.get(name) is None:
            continue
        plain[name] = {
            "value": row[name],
            "low": row[f"{name}_low"],
            "high": row[f"{name}_high"],
        }
    plain["throughput"] = plain.pop("samples_per_second")
    plain["throughput_per_rank"] = plain.pop("samples_per_second_per_rank")
    return plain


def _plain_column(column: pd.Series[Any]) -> list[Any]:
    known = column.notna()
    values = column.tolist()
    if column.dtype == object:
        values = [_plain(value) for value in values]
    if known.all():
        return values
    return [v if there else None for v, there in zip(values, known, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value.item() if hasattr(value, "item") else value
