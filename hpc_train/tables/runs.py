"""ExpectedStudy and Records -> one row per run that was asked for, whatever became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from hpc_train.errors import ReportError
from hpc_train.model.measurement import ExpectedRun, ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.submission import JobState
from hpc_train.tables.measurements import measurements, usable
from hpc_train.tables.problems import without_result
from hpc_train.tables.record_rows import as_records
from hpc_train.tables.scalars import (
    accuracy,
    contradictions,
    epoch_time_s,
    final,
    named_ranks,
    reported_rate,
    slowest,
    stated_step_time_s,
    whole_seconds,
)
from hpc_train.tables.series import axis_name, series_label, size_of
from hpc_train.tables.steps import LEAST_STEPS, NAN, StepSummary, summarise_steps

OK = JobState.COMPLETED.value
UNPARSED = "UNPARSED"
INFINITE = float("inf")
# No log is right that says more.
MOST_RANKS = 10**9
COUNTS = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "cpus_per_task")
MEASURES = (
    "global_batch",
    "step_time_s",
    "samples_per_second",
    "tokens_per_second",
    "epoch_time_s",
    "time_to_train_s",
    "first_step_time_s",
    "accuracy",
    "loss",
)
# One of these is enough for a row of a speedup table.
RESULTS = (
    "step_time_s", "samples_per_second", "tokens_per_second", "epoch_time_s", "time_to_train_s",
)  # fmt: skip
COLUMNS = (
    "run_id", "series", "repetition", "state", "problem", *COUNTS, "steps", "warmup_steps",
    *MEASURES, "whole_seconds", "transport", "flags",
)  # fmt: skip


def run_frame(study: ExpectedStudy, records: Sequence[Record] | pd.DataFrame) -> pd.DataFrame:
    """Return one row per expected run; failed, missing and unreadable runs are rows too.

    Times in seconds, `samples_per_second` and `tokens_per_second` over all ranks, `accuracy` a
    fraction; one column `axis.<name>` per axis; `flags` is a tuple of `code: detail`. Steps in the
    warm-up are left out until both `warmup.steps` and `warmup.seconds` have passed. NaN and
    infinite values are left out and flagged. A completed run without a usable measurement has state
    UNPARSED, and `problem` says what to do.

    Raises:
        ReportError: a value has the wrong scope, or belongs to a run that the study does not list;
            or two runs have one name.
    """
    table = measurements(as_records(records) if isinstance(records, pd.DataFrame) else records)
    _check_listed(study, table)
    groups = {str(name): group for name, group in table.groupby("run", sort=False)}
    rows = [_row(run, groups.get(run.run_id, table.iloc[:0]), study) for run in study.runs]
    axes = list(dict.fromkeys(f"axis.{axis_name(key)}" for run in study.runs for key in run.axes))
    frame = pd.DataFrame(rows, columns=pd.Index([*COLUMNS[:2], *axes, *COLUMNS[2:]]))
    counts = dict.fromkeys((*COUNTS, "repetition", "steps", "warmup_steps"), "Int64")
    types = {**counts, **dict.fromkeys(MEASURES, "float64"), "whole_seconds": "bool"}
    typed: pd.DataFrame = frame.astype(types)
    return typed


def _row(run: ExpectedRun, every: pd.DataFrame, study: ExpectedStudy) -> dict[str, Any]:
    warmup = study.warmup
    known = usable(every["value"])
    table = every[known]
    size = _size(run, table)
    batch = final(table, "global_batch_size")
    steps = summarise_steps(table, warmup, size["ranks"], batch)
    rate = steps.samples_per_second
    if not steps.seen:
        rate = reported_rate(table, "samples_per_second", warmup, size["ranks"])
    tokens = reported_rate(table, "tokens_per_second", warmup, size["ranks"])
    row: dict[str, Any] = {
        "run_id": run.run_id,
        "series": _series(run, size["ranks"], len(study.runs)),
        **{f"axis.{axis_name(key)}": value for key, value in run.axes.items()},
        "repetition": run.repetition,
        **size,
        "steps": steps.steps,
        "warmup_steps": steps.warmup_steps,
        "global_batch": steps.samples_per_step if batch is None else batch,
        "step_time_s": steps.step_time_s if steps.seen else stated_step_time_s(table),
        "samples_per_second": rate if 0 < rate < INFINITE else NAN,
        "tokens_per_second": tokens if 0 < tokens < INFINITE else NAN,
        "epoch_time_s": epoch_time_s(table),
        "time_to_train_s": slowest(table, "time_to_train"),
        "first_step_time_s": slowest(table, "first_step_time"),
        "accuracy": accuracy(table),
        "loss": final(table, "loss"),
        "whole_seconds": whole_seconds(table),
        "transport": run.transport,
    }
    row["state"], row["problem"] = _verdict(run, table, row, without_result(table, steps, study))
    row["flags"] = (*_flags(table, steps, size["ranks"]), *_left_out(every[~known]))
    return row


def _series(run: ExpectedRun, ranks: int | None, runs: int) -> str:
    """Return the name of a run's series.

    Of logs that do not say how many ranks there were, nothing says that they are of one size.
    """
    unknown = run.topology is None and not run.axes and not run.sizes
    alone = unknown and ranks is None and runs > 1
    return run.run_id if alone else series_label(run.axes)


def _size(run: ExpectedRun, table: pd.DataFrame) -> dict[str, int | None]:
    if run.topology:
        sizes = {name: getattr(run.topology, name) for name in COUNTS if name != "ranks"}
        return {**sizes, "ranks": run.topology.world_size}
    if run.sizes:
        return {name: run.sizes.get(name) for name in COUNTS}
    axes = {name: size_of(run.axes, name) for name in ("nodes", "gpus_per_node", "tasks_per_node")}
    world = final(table, "world_size")
    stated = int(world) if world and 1 <= world <= MOST_RANKS else None
    # Ranks that only repeated a summary have no row in the table.
    named = max(run.ranks, named_ranks(table) or 0)
    return {**axes, "cpus_per_task": None, "ranks": stated or named or None}


def _verdict(
    run: ExpectedRun, table: pd.DataFrame, row: dict[str, Any], problem: str
) -> tuple[str, str]:
    if run.state != OK:
        return run.state, run.problem
    world = final(table, "world_size")
    if run.topology and world is not None and world != run.topology.world_size:
        # Ranks that each train alone look like perfect scaling.
        return UNPARSED, f"the log says world_size {world:g}, planned {run.topology.world_size}"
    seen, counted = row["steps"] + row["warmup_steps"], row["steps"]
    if seen and not (counted and row["step_time_s"] > 0):
        return UNPARSED, problem
    if all(pd.isna(row[name]) for name in RESULTS):
        return UNPARSED, run.problem or problem
    return OK, run.problem


def _flags(table: pd.DataFrame, steps: StepSummary, ranks: int | None) -> tuple[str, ...]:
    flags = []
    if 0 < steps.steps < LEAST_STEPS:
        flags.append(f"short: {steps.steps} steps")
    timed = table[(table["metric"] == "step_time") & (table["scope"] == "per_rank")]
    whole = table[table["scope"] == "global"]
    if ranks and 0 < timed["who"].nunique() < ranks:
        flags.append(f"ranks: steps of {timed['who'].nunique()} of {ranks} ranks")
    for metric in ("accuracy", "global_batch_size", "world_size", "samples_per_second"):
        values = contradictions(whole, metric)
        if values:
            flags.append(f"varies: {metric} {', '.join(f'{v:g}' for v in values)}; last taken")
    return tuple(flags)


def _left_out(odd: pd.DataFrame) -> list[str]:
    if odd.empty:
        return []
    names = ", ".join(f"{n} of {metric}" for metric, n in odd["metric"].value_counts().items())
    return [f"not finite: {names} left out"]


def _check_listed(study: ExpectedStudy, table: pd.DataFrame) -> None:
    names = [run.run_id for run in study.runs]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ReportError(
            f"{study.name}: two runs are called {twice}; their lines cannot be told apart",
            "give the logs different names",
        )
    strangers = sorted(set(table["run"]) - set(names))
    if strangers:
        raise ReportError(f"{study.name}: records of runs that it does not list: {strangers[0]}")
