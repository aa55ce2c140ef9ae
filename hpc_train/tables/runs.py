"""ExpectedStudy and records -> one row per requested run, in any state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.errors import ReportError
from hpc_train.model.measurement import CONTRADICTED, ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.submission import JobState
from hpc_train.tables.beside import BESIDE, beside, samples_seen, time_shares
from hpc_train.tables.columns import Columns, Flags, Ints, columns
from hpc_train.tables.copies import refuse_copies
from hpc_train.tables.doubts import run_flags, with_lost
from hpc_train.tables.intervals import Floats
from hpc_train.tables.lost import without_final_loss
from hpc_train.tables.magnitudes import usable
from hpc_train.tables.measurements import Rows, check_scopes, metric_kinds, once, stated
from hpc_train.tables.problems import problems
from hpc_train.tables.programs import with_programs
from hpc_train.tables.scalars import (
    accuracy,
    epoch_time_s,
    final,
    named_ranks,
    slowest,
    stated_step_time_s,
    whole_seconds,
)
from hpc_train.tables.series import axis_name
from hpc_train.tables.sizes import Sizes, series_of, sizes_of
from hpc_train.tables.stated_conditions import conditions_of
from hpc_train.tables.steps import NAN, QUANTILES, StepSummary, reported_rate, summarise_steps

OK = JobState.COMPLETED.value
UNPARSED = "UNPARSED"
COUNTS = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus", "cpus_per_task")
MEASURES = (
    "global_batch", "step_time_s", "samples_per_second", "tokens_per_second", "epoch_time_s",
    "time_to_train_s", "first_step_time_s", "accuracy", "loss", "wall_s", "step_time_mean_s",
    *QUANTILES, *BESIDE,
)  # fmt: skip
# One of these is enough for a row of a speedup table.
RESULTS = (
    "step_time_s", "samples_per_second", "tokens_per_second", "epoch_time_s", "time_to_train_s",
)  # fmt: skip
COLUMNS = (
    "run_id", "series", "repetition", "state", "problem", *COUNTS, "steps", "warmup_steps",
    *MEASURES, "whole_seconds", "transport", "restarts", "conditions", "flags",
)  # fmt: skip
_WHOLE = (*COUNTS, "repetition", "steps", "warmup_steps", "restarts")


def run_frame(study: ExpectedStudy, records: Sequence[Record] | pd.DataFrame) -> pd.DataFrame:
    """Return one row per expected run; failed, missing and unreadable runs are rows too.

    `records` may be a frame with the columns of `records_frame`. Times in seconds,
    `samples_per_second` and `tokens_per_second` over all ranks, `accuracy` a fraction; one column
    `axis.<name>` per axis; `flags` is a tuple of `code: detail`, `conditions` a dict. Steps in the
    warm-up are left out until both `warmup.steps` and `warmup.seconds` have passed; the quantiles
    `step_p05_s` to `step_p95_s` are of the measured steps. NaN and infinite values are left out and
    flagged. A completed run without a usable measurement has state UNPARSED, and `problem` says
    what to do.

    Raises:
        ReportError: a value has the wrong scope, or belongs to a run that the study does not list;
            two runs have one name, or two logs are one.
    """
    names = [run.run_id for run in study.runs]
    fields = columns(records)
    fields = fields._replace(run=fields.run.led_by(names))
    kinds = metric_kinds(fields)
    rows = stated(fields, kinds)
    check_scopes(fields, rows)
    _check_listed(study, fields, rows.run)
    rows, rest = once(rows), fields.take(np.flatnonzero(kinds < 0))
    known = usable(rows.value)
    odd, rows = rows.take(~known), rows.take(known) if not known.all() else rows
    world = final(rows, "world_size", len(names))
    sizes = sizes_of(study.runs, world, named_ranks(rows, len(names)))
    batch = final(rows, "global_batch_size", len(names))
    steps = summarise_steps(rows, study.warmup, sizes.ranks, batch)
    found = _measured(study, rows, steps, sizes.ranks)
    found["global_batch"] = np.where(np.isnan(batch), steps.samples_per_step, batch)
    found |= beside(rest, rows, study.warmup, sizes.ranks)
    found["samples_seen"] = samples_seen(rows, found["optimiser_steps"], found["global_batch"])
    found |= time_shares(rest, study.warmup, steps.mean)
    states, why = _verdicts(study, rows, steps, (sizes.planned, world), found)
    flags = run_flags(study.runs, rows, odd, steps.steps, sizes.ranks)
    flags = with_lost(flags, without_final_loss(fields, len(names)))
    said = with_programs(fields, conditions_of(rest, study.runs))
    own = {"state": states, "problem": why, "flags": flags, "conditions": said}
    return _frame(study, sizes, {**found, **own})


def _measured(
    study: ExpectedStudy, rows: Rows, steps: StepSummary, ranks: Floats
) -> dict[str, Any]:
    runs = len(ranks)
    printed = reported_rate(rows.named("samples_per_second"), study.warmup, ranks)
    tokens = reported_rate(rows.named("tokens_per_second"), study.warmup, ranks)
    return {
        "steps": steps.steps,
        "warmup_steps": steps.warmup_steps,
        "step_time_s": np.where(steps.seen > 0, steps.step_time_s, stated_step_time_s(rows, runs)),
        "step_time_mean_s": steps.mean,
        **steps.quantiles,
        "samples_per_second": _rate(np.where(steps.seen > 0, steps.samples_per_second, printed)),
        "tokens_per_second": _rate(tokens),
        "epoch_time_s": epoch_time_s(rows, runs),
        "time_to_train_s": slowest(rows, "time_to_train", runs),
        "first_step_time_s": slowest(rows, "first_step_time", runs),
        "accuracy": accuracy(rows, runs),
        "loss": final(rows, "loss", runs),
        "whole_seconds": whole_seconds(rows, runs),
    }


def _rate(values: Floats) -> Floats:
    return np.where((values > 0) & usable(values), values, NAN)


def _verdicts(
    study: ExpectedStudy,
    rows: Rows,
    steps: StepSummary,
    ranks: tuple[Floats, Floats],
    found: Mapping[str, Any],
) -> tuple[list[str], list[str]]:
    """Return state and problem of each run; `ranks` are those planned and those logged."""
    states, why = [run.state for run in study.runs], [run.problem for run in study.runs]
    ok: Flags = np.array([state == OK for state in states], dtype=bool)
    planned, world = ranks
    apart = ok & ~np.isnan(planned) & ~np.isnan(world) & (planned != world)
    for run in np.flatnonzero(apart).tolist():
        # Ranks that each train alone look like perfect scaling.
        word = "planned" if study.runs[run].topology else "stated"
        said = f"{CONTRADICTED}{world[run]:g}, {word} {planned[run]:.0f}"
        states[run], why[run] = UNPARSED, said
    unmeasured = (steps.seen > 0) & ~(steps.step_time_s > 0)
    nothing = np.all([np.isnan(found[name]) for name in RESULTS], axis=0)
    for run, problem in problems(rows, ok & ~apart & (unmeasured | nothing), steps, study):
        states[run], why[run] = UNPARSED, "" if unmeasured[run] else why[run]
        why[run] = why[run] or problem
    return states, why


def _frame(study: ExpectedStudy, sizes: Sizes, found: Mapping[str, Any]) -> pd.DataFrame:
    runs = study.runs
    keys = {axis_name(key): key for run in runs for key in run.axes}
    short = [{axis_name(key): value for key, value in run.axes.items()} for run in runs]
    axes = {f"axis.{name}": [axis.get(name, NAN) for axis in short] for name in keys}
    told = {
        name: [getattr(run, name) for run in runs]
        for name in ("run_id", "repetition", "wall_s", "transport", "restarts")
    }
    sized = {name: getattr(sizes, name) for name in COUNTS}
    cells = {**told, **sized, **found, "series": series_of(runs, sizes.ranks)}
    table = {name: cells[name] for name in COLUMNS[:2]} | axes
    table |= {name: _typed(name, cells[name]) for name in COLUMNS[2:]}
    frame: pd.DataFrame = pd.DataFrame(table)
    return frame


def _typed(name: str, values: Any) -> Any:
    if name in _WHOLE:
        return pd.array(values, dtype="Int64")
    if name in MEASURES:
        return np.array(values, dtype=np.float64)
    return values


def _check_listed(study: ExpectedStudy, fields: Columns, run: Ints) -> None:
    names = fields.run.names
    twice = [name for name, n in Counter(run.run_id for run in study.runs).items() if n > 1]
    if twice:
        raise ReportError(
            f"{study.name}: two runs are called {twice[0]}; their lines cannot be told apart",
            "give the logs different names",
        )
    strangers = np.unique(run[run >= len(study.runs)]).tolist()
    if strangers:
        first = min(names[code] for code in strangers)
        raise ReportError(f"{study.name}: records of runs that it does not list: {first}")
    refuse_copies(fields, study.runs)
