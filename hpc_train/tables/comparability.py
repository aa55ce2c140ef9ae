"""Run table -> run table whose series hold nothing that must not be compared."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from hpc_train.model.measurement import ExpectedStudy


class Separated(NamedTuple):
    """The runs, with as many series as they need, and a sentence for each reason to split."""

    runs: pd.DataFrame
    notes: tuple[str, ...]


def separated(runs: pd.DataFrame, study: ExpectedStudy) -> Separated:
    """Split each series by the conditions that differ in it, unless a person allowed them to."""
    return Separated(runs, ())
