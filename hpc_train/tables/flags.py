"""Points -> what a reader should distrust about them, as `code: detail`."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import pandas as pd

from hpc_train.tables.points import BASES, rates
from hpc_train.tables.runs import OK


def point_flags(
    row: Mapping[str, Any], runs: pd.DataFrame, baseline: pd.DataFrame | None, gate: float | None
) -> tuple[str, ...]:
    """Return the flags of one point; `runs` and `baseline` are all runs of the two points."""
    ok = runs[runs["state"] == OK]
    flags = ["n=1: no interval"] if row["n_ok"] == 1 else []
    flags += sorted({flag for own in ok["flags"] for flag in own})
    if len(rates(ok, row["basis"])) < len(ok):
        flags.append(f"unmeasured: {len(ok) - len(rates(ok, row['basis']))} without {row['basis']}")
    if pd.notna(row["efficiency_low"]) and row["efficiency_low"] > 1:
        flags.append("superlinear: check cache, batch, clocks")
    if gate is not None and pd.notna(row["efficiency"]) and row["efficiency"] < gate:
        flags.append(f"gate: efficiency {row['efficiency']:.3f} < {gate:g}")
    if baseline is not None and not row["is_baseline"]:
        if row["n_ok"] > 1 and len(rates(baseline[baseline["state"] == OK], row["basis"])) == 1:
            flags.append("baseline n=1: no interval")
        flags += _accuracy(row, ok, baseline[baseline["state"] == OK])
        flags += _whole_seconds(row, ok, baseline[baseline["state"] == OK])
    return tuple(flags)


def _accuracy(row: Mapping[str, Any], ok: pd.DataFrame, base: pd.DataFrame) -> list[str]:
    here, there = ok["accuracy"].dropna(), base["accuracy"].dropna()
    if min(len(here), len(there)) < 2:
        return []
    error = sqrt(here.var(ddof=1) / len(here) + there.var(ddof=1) / len(there))
    change = float(row["accuracy_change_pp"])
    # Repetitions of one seed can agree to the last digit; then the noise was not measured.
    if error < 1e-9 or abs(change) <= 200 * error:
        return []
    return [f"accuracy: {change:+.2f} points, standard error {100 * error:.2f}"]


def _whole_seconds(row: Mapping[str, Any], ok: pd.DataFrame, base: pd.DataFrame) -> list[str]:
    """Bound the speedup when both times were cut to whole seconds: each is up to 1 s longer."""
    if not row["whole_seconds"] or base.empty:
        return []
    own, first = float(ok[BASES[row["basis"]]].mean()), float(base[BASES[row["basis"]]].mean())
    if not own > 0:
        return ["whole seconds: a time of 0 s is less than 1 s"]
    low, high = first / (own + 1), (first + 1) / own
    return [f"whole seconds: true speedup between {low:.2f} and {high:.2f}"]
