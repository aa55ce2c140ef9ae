"""Run and point table -> the measured steps that a forecast starts from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd
from msgspec.structs import replace

from hpc_train.model.advice import MeasuredStep, Meter
from hpc_train.model.study import ALONE
from hpc_train.model.training_strategies import STRATEGIES
from hpc_train.model.value_range import Range, exactly

# Series, nodes and ranks of a point.
Key = tuple[str, int | None, int]


def measured_steps(runs: pd.DataFrame, points: pd.DataFrame, source: str) -> list[MeasuredStep]:
    """Return one step for each point that has a step time or a rate, and whose ranks are known.

    The strategy is a condition of its runs; without one it is `single` or `ddp`.
    """
    strategies, started, drawn = _strategies(runs), _started(runs), _job_power(runs)
    return [
        _with_power(replace(step, started=started.get(key)), row, drawn.get(key))
        for row in points.to_dict("records")
        for step in _step(row, strategies.get(str(row["series"])), source)
        for key in [(str(row["series"]), step.nodes, step.ranks)]
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
    """Return the strategy of each series whose runs have one and the same."""
    found: dict[str, set[str]] = {}
    for series, conditions in zip(runs["series"], runs["conditions"], strict=True):
        stated = conditions.get("strategy") if isinstance(conditions, Mapping) else None
        found.setdefault(str(series), set()).add(str(stated))
    return {
        series: next(iter(names))
        for series, names in found.items()
        if len(names) == 1 and names <= set(STRATEGIES)
    }


def _started(runs: pd.DataFrame) -> dict[Key, float]:
    """Return the start of the first run of each series, number of nodes and number of ranks."""
    found: dict[Key, float] = {}
    for row in runs.to_dict("records"):
        ranks, nodes, started = (_number(row.get(key)) for key in ("ranks", "nodes", "started"))
        if ranks is not None and started is not None:
            key = (str(row["series"]), None if nodes is None else int(nodes), int(ranks))
            found[key] = min(started, found.get(key, started))
    return found


def _job_power(runs: pd.DataFrame) -> dict[Key, float]:
    """Return the mean power [W] of the jobs of each size, of those that started once."""
    joules: dict[Key, list[float]] = {}
    seconds: dict[Key, list[float]] = {}
    for row in runs.to_dict("records"):
        ranks, nodes = _number(row.get("ranks")), _number(row.get("nodes"))
        energy, wall = _number(row.get("job_energy_j")), _number(row.get("wall_s"))
        once = _number(row.get("job_energy_per_sample_j")) is not None
        if ranks is not None and energy and wall and once:
            key = (str(row["series"]), None if nodes is None else int(nodes), int(ranks))
            joules.setdefault(key, []).append(energy)
            seconds.setdefault(key, []).append(wall)
    return {key: sum(joules[key]) / sum(seconds[key]) for key in joules}


def _with_power(
    step: MeasuredStep, row: Mapping[Any, Any], job_power_w: float | None
) -> MeasuredStep:
    """Add the power while training: of nodes where the accounting has it, else of the GPUs.

    A job draws less while it starts, and spends energy then: its mean power is the lower bound, and
    its whole energy for each sample the upper one.
    """
    per_sample, gpus = _number(row.get("job_energy_per_sample_j")), _number(row.get("power_w"))
    power: Range | None = None
    meter: Meter = ""
    if job_power_w is not None and per_sample is not None and step.batch:
        ends = sorted((job_power_w, per_sample * step.batch / step.seconds))
        power, meter = Range(low=ends[0], high=ends[1]), "nodes"
    elif gpus is not None:
        power, meter = exactly(gpus), "GPUs"
    return replace(step, power_w=power, meter=meter)


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
    )


def _named(source: str, series: str) -> str:
    return source if series == ALONE else f"{source}, {series}"


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
