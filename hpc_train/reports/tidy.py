"""Rows of runs -> long rows: one for each run and metric, with unit and direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.model.metrics import RUN_METRICS

Row = Mapping[str, Any]
METRICS = {metric.key: metric for metric in RUN_METRICS if metric.name}
PLACE = (
    "study", "series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "run_id", "repetition",
    "state",
)  # fmt: skip
COLUMNS = (*PLACE, "metric", "value", "unit", "better", "problem")


def tidy_rows(study: str, runs: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield a row per run and metric; a run without any value has one row, with its problem."""
    for run in runs:
        place = {"study": study} | {name: run.get(name) for name in PLACE[1:]}
        known = {key: run[key] for key in METRICS if run.get(key) is not None}
        for key, value in known.items():
            metric = METRICS[key]
            yield {**place, "metric": metric.name, "value": value, "unit": metric.unit,
                   "better": metric.direction, "problem": run["problem"]}  # fmt: skip
        if not known:
            nothing = dict.fromkeys(("metric", "value", "unit", "better"))
            yield {**place, **nothing, "problem": run["problem"]}
