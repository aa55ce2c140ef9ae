"""Rows of runs -> long rows: one for each run and metric, with unit and direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Row = Mapping[str, Any]
Better = Literal["higher", "lower", ""]


class Metric(NamedTuple):
    """Name and unit of a column of the run table, and which direction is better, if any."""

    name: str
    unit: str
    better: Better = ""


METRICS = {
    "global_batch": Metric("global_batch_size", "samples"),
    "steps": Metric("steps", "1"),
    "warmup_steps": Metric("warmup_steps", "1"),
    "step_time_s": Metric("step_time", "s", "lower"),
    "step_time_mean_s": Metric("step_time_mean", "s", "lower"),
    "step_p05_s": Metric("step_time_p05", "s", "lower"),
    "step_p25_s": Metric("step_time_p25", "s", "lower"),
    "step_p75_s": Metric("step_time_p75", "s", "lower"),
    "step_p95_s": Metric("step_time_p95", "s", "lower"),
    "samples_per_second": Metric("samples_per_second", "1/s", "higher"),
    "tokens_per_second": Metric("tokens_per_second", "1/s", "higher"),
    "epoch_time_s": Metric("epoch_time", "s", "lower"),
    "time_to_train_s": Metric("time_to_train", "s", "lower"),
    "first_step_time_s": Metric("first_step_time", "s", "lower"),
    "wall_s": Metric("wall_time", "s", "lower"),
    "accuracy": Metric("accuracy", "1", "higher"),
    "loss": Metric("loss", "1", "lower"),
    "mfu": Metric("mfu", "1", "higher"),
    "memory_gib": Metric("memory", "GiB", "lower"),
    "learning_rate": Metric("learning_rate", "1"),
    "optimiser_steps": Metric("optimiser_steps", "1"),
    "samples_seen": Metric("samples_seen", "1"),
    "data_share": Metric("data_share", "1", "lower"),
    "communication_share": Metric("communication_share", "1", "lower"),
    "energy_j": Metric("energy", "J", "lower"),
    "restarts": Metric("restarts", "1", "lower"),
}
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
            name, unit, better = METRICS[key]
            yield {**place, "metric": name, "value": value, "unit": unit, "better": better,
                   "problem": run["problem"]}  # fmt: skip
        if not known:
            nothing = dict.fromkeys(("metric", "value", "unit", "better"))
            yield {**place, **nothing, "problem": run["problem"]}
