"""Runs of the reference trainer -> a row for each strategy and size: speed, memory, traffic, loss.

The speedup is that to the strategy `single` with the same model, data, precision and global batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.advice.advice import MeasuredStep
from hpc_train.jobs.operations import PARAMETERS, number_of
from hpc_train.jobs.strategies import (
    GPT_SHAPES,
    MESHES,
    SCHEDULES,
    STRATEGIES,
    TrainingRequest,
    TrainingSize,
    idle_share,
    sent_bytes,
    state_bytes,
    strategy_problem,
)
from hpc_train.jobs.study import ALONE
from hpc_train.runs.run import JobState
from hpc_train.scaling.record_arrays import of_metric

# Largest difference of the losses, as a fraction of that of `single`: the sums of a strategy have
# another order, which shows in the last digits of the precision.
TOLERANCE = {"fp64": 1e-10, "fp32": 1e-4, "bf16": 1e-2, "fp16": 1e-2}
_MEASURED = ("state_memory", "sent_bytes", "exposed_communication")
_SAME = ("model", "data", "precision", "optimizer")
_MEDIANS = ("step_time_s", "samples_per_second", "loss", "mfu", "memory_gib", *_MEASURED)
_GIB = 2**30

Row = dict[str, Any]


def strategy_rows(runs: pd.DataFrame, records: pd.DataFrame) -> list[Row]:
    """Return the rows, by size and speed; empty without two strategies that have a result.

    Times in s, memory in GiB (of the states the mean, else the peak of the largest rank), traffic
    in bytes of a rank and step, `idle` as a share. `expected_...` are from formulas.
    """
    trained = np.array(
        [own.get("strategy") in STRATEGIES for own in runs["conditions"]], dtype=bool
    )
    done = runs[trained & (runs["state"] == JobState.COMPLETED.value)]
    if done.empty:
        return []
    measured = {name: _means(records, name) for name in _MEASURED}
    groups: dict[tuple[str, int], list[Row]] = {}
    for run in done[done["ranks"].notna()].to_dict("records"):
        own = {name: values.get(run["run_id"]) for name, values in measured.items()}
        mfu = run["mfu"] if pd.notna(run["mfu"]) else run["mfu_computed"]
        row = {**run, **own, **run["conditions"], "mfu": mfu}
        groups.setdefault((run["series"], int(run["ranks"])), []).append(row)
    rows = [_row(group) for group in groups.values()]
    if len({row["strategy"] for row in rows}) < 2:
        return []
    for row in rows:
        row |= _compared(row, rows)
    return sorted(rows, key=lambda row: (row["ranks"], -(row["samples_per_second"] or 0)))


def _means(records: pd.DataFrame, metric: str) -> Mapping[str, float]:
    """Return the mean of a metric over the ranks of each run."""
    means = of_metric(records, metric).groupby("run", observed=True)["value"].mean()
    return {str(run): float(value) for run, value in means.items()}


def _row(group: Sequence[Row]) -> Row:
    first = group[0]
    row = {"strategy": first["strategy"], "series": first["series"], "n": len(group)}
    row |= {name: first.get(name) for name in ("mesh", "schedule", *_SAME)}
    row |= {"ranks": int(first["ranks"]), "global_batch": _known(first["global_batch"])}
    for name in _MEDIANS:
        values = [value for run in group if (value := _known(run[name])) is not None]
        row[name] = median(values) if values else None
    return row | _expected(first)


def _known(value: Any) -> float | None:
    return float(value) if pd.notna(value) else None


def _expected(run: Row) -> Row:
    """Return memory, traffic and bubble by the formulas, None where the run does not say enough."""
    names = ("expected_state_memory", "expected_sent_bytes", "idle")
    request, size = _request(run), _size(run)
    if request is None or size is None:
        return dict.fromkeys(names)
    memory = state_bytes(request, size) / _GIB
    return dict(zip(names, (memory, sent_bytes(request, size), idle_share(request)), strict=True))


def _request(run: Row) -> TrainingRequest | None:
    mesh = str(run.get("mesh") or "").split(",")
    schedule, parts = run.get("schedule"), number_of(run.get("microbatches"))
    named = run["strategy"] in MESHES and len(mesh) == 2 and all(map(str.isdecimal, mesh))
    request = TrainingRequest(
        strategy=run["strategy"],
        model=run["model"] if run.get("model") in GPT_SHAPES else "cnn",
        world_size=int(run["ranks"]),
        mesh=(int(mesh[0]), int(mesh[1])) if named else (),
        schedule=schedule if schedule in SCHEDULES else "1F1B",
        accumulate=int(parts) if parts else None,
    )
    return None if strategy_problem(request) else request


def _size(run: Row) -> TrainingSize | None:
    parameters, batch = number_of(run.get(PARAMETERS)), _known(run["global_batch"])
    if not parameters or not batch or run.get("optimizer") not in ("sgd", "adamw"):
        return None
    backend = "gloo" if run.get("device") == "cpu" else "nccl"
    return TrainingSize(
        parameters=int(parameters),
        optimizer=run["optimizer"],
        batch=int(batch),
        backend=backend,
        gathered=2 if run.get("precision") in ("bf16", "fp16") else 4,
    )


def _compared(row: Row, rows: Sequence[Row]) -> Row:
    """Return speedup, efficiency and loss difference to `single`, or why there is no speedup."""
    found: Row = {"speedup": None, "efficiency": None, "loss_difference": None, "reason": ""}
    same = ("global_batch", *_SAME)
    single = next(
        (o for o in rows if o["strategy"] == "single" and all(o[k] == row[k] for k in same)), None
    )
    if single is None:
        return {**found, "reason": "no run of single with the same work"}
    if row["loss"] is None or single["loss"] is None:
        return {**found, "reason": "the loss is not known"}
    difference = abs(row["loss"] - single["loss"]) / (abs(single["loss"]) or 1.0)
    found["loss_difference"] = difference
    limit = TOLERANCE.get(row["precision"] or "", TOLERANCE["fp32"])
    if not difference <= limit:
        reason = f"its loss differs from that of single by {difference:.1e}, more than {limit:g}"
        return {**found, "reason": reason}
    if not row["samples_per_second"] or not single["samples_per_second"]:
        return {**found, "reason": "the throughput is not known"}
    speedup = row["samples_per_second"] / single["samples_per_second"]
    return {**found, "speedup": speedup, "efficiency": speedup / row["ranks"]}


_OTHER_WORDS = {
    "fsdp2": "fsdp", "zero3": "fsdp", "fullshard": "fsdp", "hybridshard": "hsdp",
    "dataparallel": "dp", "distributeddataparallel": "ddp", "distributedoptimizer": "zero1",
}  # fmt: skip


def measured_steps(runs: pd.DataFrame, points: pd.DataFrame, source: str) -> list[MeasuredStep]:
    """Return one step for each point that has a step time or a rate, and whose ranks are known.

    The strategy is a condition of its runs or a column; without one it is `single` or `ddp`. One
    that advice does not know is kept: no other is compared with it.
    """
    strategies = _strategies(runs)
    return [
        step
        for row in points.to_dict("records")
        for step in _step(row, strategies.get(str(row["series"])), source)
    ]


def common_conditions(runs: pd.DataFrame, names: Collection[str]) -> dict[str, str]:
    """Return those of these conditions that all runs state, and state alike."""
    stated = [own for own in runs["conditions"] if isinstance(own, Mapping)]
    found = {name: {str(own.get(name)) for own in stated} for name in names}
    every = len(stated) == len(runs)
    return {
        name: values.pop()
        for name, values in found.items()
        if every and len(values) == 1 and "None" not in values
    }


def _strategies(runs: pd.DataFrame) -> dict[str, str]:
    """Return the strategy of each series whose runs have one and the same, in our words."""
    found: dict[str, set[str]] = {}
    for run in runs.to_dict("records"):
        own: Any = run["conditions"] if isinstance(run["conditions"], dict) else {}
        stated = own.get("strategy") or run.get("axis.strategy")
        word = "" if stated is None or pd.isna(stated) else str(stated).strip().lower()
        found.setdefault(str(run["series"]), set()).add(word)
    return {
        series: _OTHER_WORDS.get(name := next(iter(names)).replace("-", "").replace("_", ""), name)
        for series, names in found.items()
        if len(names) == 1 and names != {""}
    }


def _step(row: Mapping[Any, Any], strategy: str | None, source: str) -> Iterator[MeasuredStep]:
    ranks, batch = _number(row["ranks"]), _number(row["global_batch"])
    seconds, rate = _number(row["step_time_s"]), _number(row["samples_per_second"])
    if seconds is None and rate and batch:
        seconds = batch / rate
    nodes = _number(row.get("nodes"))
    if ranks is None or not seconds:
        return
    yield MeasuredStep(
        seconds=seconds,
        ranks=int(ranks),
        batch=batch,
        strategy="single" if ranks == 1 else strategy or "ddp",
        source=f"{_named(source, str(row['series']))}: {_counted(int(ranks), 'rank')}, "
        f"{_counted(int(row['n_ok']), 'run')}",
        peak_memory_gib=_number(row.get("memory_gib")),
        data_share=_number(row.get("data_share")),
        nodes=None if nodes is None else int(nodes),
        guessed=strategy is None and ranks > 1,
    )


def _named(source: str, series: str) -> str:
    return source if series == ALONE else f"{source}, {series}"


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
