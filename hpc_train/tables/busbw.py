"""Records of network benchmarks -> the bus bandwidth of each run's largest message."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hpc_train.model.record import Record
from hpc_train.tables.bandwidth import PLACEMENTS
from hpc_train.tables.frame import records_frame


def largest_busbw(records: Sequence[Record] | pd.DataFrame) -> dict[str, float]:
    """Return run -> busbw [GB/s] at its largest message, of the better placement as `headline`.

    busbw as NVIDIA's nccl-tests define it (doc/PERFORMANCE.md): algbw times the factor of the
    collective, 2(n-1)/n for all-reduce.
    """
    if not isinstance(records, pd.DataFrame):
        records = records_frame(record for record in records if record.metric == "busbw")
    stated = records["message_size"].notna() & records["variant"].isin(PLACEMENTS)
    own = records[stated & (records["metric"] == "busbw") & (records["value"] > 0)]
    best = own.sort_values(["message_size", "value"]).drop_duplicates("run", keep="last")
    return dict(sorted(zip(best["run"].astype(str), best["value"].astype(float), strict=True)))
