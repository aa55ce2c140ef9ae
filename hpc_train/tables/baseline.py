"""Points -> the point of each series that counts as 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from hpc_train.tables.points import KEY
from hpc_train.tables.series import axis_name

SIZE_ORDER = ["gpus", "ranks", "nodes"]


def baseline_key(
    runs: pd.DataFrame, series: str, wanted: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """Return the key of a series' baseline: the smallest point with the wanted axis values.

    A baseline that names another series (`launcher: srun`) serves all of them. None when no point
    has the wanted values.
    """
    matching = runs[_matches(runs, wanted)]
    own = matching[matching["series"] == series]
    candidates = own if len(own) else matching
    if candidates.empty:
        return None
    gpus = candidates["nodes"] * candidates["gpus_per_node"]
    ordered = candidates.assign(gpus=gpus).sort_values(SIZE_ORDER, kind="stable")
    return tuple(ordered.iloc[0][KEY])


def with_key(runs: pd.DataFrame, key: tuple[Any, ...]) -> pd.DataFrame:
    """Return the runs of one point."""
    keep = pd.Series(True, index=runs.index)
    for name, value in zip(KEY, key, strict=True):
        keep &= runs[name].isna() if pd.isna(value) else (runs[name] == value).fillna(False)
    own: pd.DataFrame = runs[keep]
    return own


def _matches(runs: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.Series[bool]:
    keep: pd.Series[bool] = pd.Series(True, index=runs.index)
    for key, value in wanted.items():
        name = axis_name(key)
        column = f"axis.{name}" if f"axis.{name}" in runs else name
        if column not in runs:
            return keep & False
        keep &= runs[column].map(lambda own, value=value: _same(own, value)).astype(bool)
    return keep


def _same(own: object, wanted: object) -> bool:
    return not pd.isna(own) and (own == wanted or str(own) == str(wanted))  # type: ignore[call-overload]
