"""Ok runs of two sides -> the change of their accuracy, and the change that noise explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.tables.confidence_intervals import corrected, noise_limit
from hpc_train.tables.group_reductions import NAN, Moments


def accuracy_change(ok: Sequence[pd.DataFrame]) -> dict[str, Any]:
    """Return the change from A to B [percentage points], and the moments of both sides.

    There are no moments if a side has fewer than two values.
    """
    a, b = (side["accuracy"].dropna().to_numpy(dtype=np.float64) for side in ok)
    return {
        "accuracy_change_pp": 100 * (b.mean() - a.mean()) if len(a) and len(b) else NAN,
        "accuracies": [Moments.along_axis(x) for x in (a, b)] if min(len(a), len(b)) > 1 else None,
    }


def accuracy_limits(rows: Sequence[Mapping[str, Any]], confidence: float) -> list[float]:
    """Return the change [percentage points] that noise explains at each point; NaN if not known.

    The limits are Student's, corrected for the number of points, as the verdicts on speed are.
    """

    def limits(level: float) -> list[float]:
        both = [row["accuracies"] for row in rows]
        return [100 * float(noise_limit(one[0], one[1], level)) if one else NAN for one in both]

    tests = sum(not isnan(limit) for limit in limits(confidence))
    return limits(corrected(confidence, tests))
