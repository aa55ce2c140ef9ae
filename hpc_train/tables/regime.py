"""Runs -> scaling regime: what the recorded batches say, checked against what was declared."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from hpc_train.errors import ReportError
from hpc_train.model.study import Scaling
from hpc_train.tables.runs import OK

Regime = Literal["strong", "weak", "mixed", "unknown"]


def derive_regime(runs: pd.DataFrame, declared: Scaling | None = None) -> Regime:
    """Return the regime of the completed runs, from their global batch and number of ranks.

    strong: in each series the same global batch at every size; weak: the same batch per rank;
    mixed: neither; unknown: not recorded, or no series has two sizes.

    Raises:
        ReportError: the data contradict `declared`; names two runs and their batches.
    """
    if runs["ranks"].isna().all():
        # A table may have a column of nodes and nothing more.
        runs = runs.assign(ranks=runs["nodes"])
    known = runs[(runs["state"] == OK) & runs["global_batch"].notna() & runs["ranks"].notna()]
    found = {_of_series(group) for _, group in known.groupby("series")} - {"unknown"}
    regime: Regime = "unknown" if not found else found.pop() if len(found) == 1 else "mixed"
    if declared and regime not in ("unknown", declared):
        raise ReportError(_contradiction(known, declared, regime), _hint(regime))
    return regime


def _of_series(group: pd.DataFrame) -> Regime:
    if group["ranks"].nunique() < 2:
        return "unknown" if group["global_batch"].nunique() == 1 else "mixed"
    if group["global_batch"].nunique() == 1:
        return "strong"
    return "weak" if _per_rank(group).nunique() == 1 else "mixed"


def _per_rank(group: pd.DataFrame) -> pd.Series[float]:
    return group["global_batch"] / group["ranks"].astype("float64")


def _contradiction(known: pd.DataFrame, declared: Scaling, regime: Regime) -> str:
    for _, group in known.groupby("series"):
        batch = group["global_batch"] if declared == "strong" else _per_rank(group)
        if batch.nunique() < 2:
            continue
        first, other = batch.index[0], batch.index[batch != batch.iloc[0]][0]
        one, two = float(batch.loc[first]), float(batch.loc[other])
        names = group["run_id"].astype(str).to_dict()
        what = "global batch" if declared == "strong" else "batch per rank"
        return (
            f"declared {declared} scaling, but the data are {regime}: {what} is "
            f"{one:g} in {names[first]} and {two:g} in {names[other]}"
        )
    return f"declared {declared} scaling, but the data are {regime}"


def _hint(regime: Regime) -> str:
    if regime == "mixed":
        return "make the batch size an axis, or submit one study per regime"
    return f"declare `scaling: {regime}`, or change the batch size of the job"
