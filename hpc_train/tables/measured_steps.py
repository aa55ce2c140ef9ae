"""Run and point table -> the measured steps that a forecast starts from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd

from hpc_train.model.advice import MeasuredStep
from hpc_train.model.study import ALONE

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
