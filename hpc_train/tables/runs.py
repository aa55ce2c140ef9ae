"""ExpectedStudy and records -> one row per requested run, in any state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.errors import ReportError
from hpc_train.model.expected_study import CONTRADICTED, ExpectedStudy
from hpc_train.model.metrics import RESULTS, RUN_METRICS
from hpc_train.model.record import Record
from hpc_train.model.run_columns import RunColumns
from hpc_train.model.study import axis_name
from hpc_train.model.submission import JobState
from hpc_train.tables.condition_differences import (
    Printed,
    conditions_of,
    printed_of,
    together,
    with_programs,
)
from hpc_train.tables.duplicate_runs import marks_of, refuse_copies
from hpc_train.tables.group_reductions import NAN, Floats
from hpc_train.tables.largest_message_bandwidth import with_bandwidths
from hpc_train.tables.line_order import in_line_order
from hpc_train.tables.measurements import Rows, check_scopes, metric_kinds, once, stated
from hpc_train.tables.model_operations import computed_operations
from hpc_train.tables.parts_of_runs import parts_of
from hpc_train.tables.plausible_range import positive, usable
from hpc_train.tables.power_and_energy import (
    job_energy_per_sample_j,
    tokens_of_sample,
    use_of_hardware,
)
from hpc_train.tables.rate_contradictions import with_contradictions
from hpc_train.tables.record_arrays import Ints, Mask, RecordArrays, record_arrays
from hpc_train.tables.run_columns import COUNTS, axis_column, typed_column, without_values
from hpc_train.tables.run_flags import problems, run_flags, with_lost, without_final_loss
from hpc_train.tables.run_sizes import Sizes, series_of, sizes_of
from hpc_train.tables.run_values import (
    accuracy,
    epoch_time_s,
    epochs,
    final,
    named_ranks,
    optimiser_steps,
    reduced,
    samples_seen,
    stated_step_time_s,
    time_shares,
    whole_seconds,
)
from hpc_train.tables.shared_objects import Shared, joined
from hpc_train.tables.start_up import startup_s
from hpc_train.tables.step_times import StepSummary, reported_rate, sample_rate, summarise_steps

OK = JobState.COMPLETED.value
UNPARSED = "UNPARSED"
COLUMNS = (
    "run_id", "series", "repetition", "started", "block", "node_list", "state", "problem", *COUNTS,
    *(metric.key for metric in RUN_METRICS), "whole_seconds", "transport", "conditions", "flags",
)  # fmt: skip


class _Piece(NamedTuple):
    """The tables of some runs: sizes, measures, texts, programs, and marks by name."""

    sizes: Sizes
    found: dict[str, Any]
    printed: Printed
    marks: dict[str, int]


def run_frame(
    study: ExpectedStudy, records: RecordArrays | pd.DataFrame | Iterable[Record]
) -> pd.DataFrame:
    """Return one row per expected run; failed, missing and unreadable runs are rows too.

    `records` may be a frame with the columns of `records_frame`. Times in seconds,
    `samples_per_second` and `tokens_per_second` over all ranks, `accuracy` a fraction; one column
    `axis.<name>` per axis; `flags` is a tuple of `Flag`, `conditions` a dict. Steps in the
    warm-up are left out until both `warmup.steps` and `warmup.seconds` have passed; the quantiles
    `step_p05_s` to `step_p95_s` are of the measured steps. NaN and infinite values are left out and
    flagged. A completed run without a usable measurement has state UNPARSED, and `problem` says
    what to do.

    Raises:
        ReportError: a value has the wrong scope, or belongs to a run that the study does not list;
            two runs have one name, or two logs are one.
    """
    _check_names(study)
    fields = record_arrays(records)
    fields = fields._replace(run=fields.run.led_by(RunColumns.of(study.runs).run_id))
    pieces = [_piece(part, own) for part, own in parts_of(study, fields)]
    refuse_copies({run: mark for piece in pieces for run, mark in piece.marks.items()})
    found: dict[str, Any] = _joined_tables([piece.found for piece in pieces])
    sizes = Sizes(**_joined_tables([piece.sizes._asdict() for piece in pieces]))
    programs = together((piece.printed, len(piece.sizes.ranks)) for piece in pieces)
    found["conditions"] = with_programs(programs, found["conditions"])
    found |= computed_operations(found, sizes)
    found["flags"] = with_contradictions(found)
    return _frame(study, sizes, found)


def _piece(study: ExpectedStudy, fields: RecordArrays) -> _Piece:
    """Return the values from the records of each run of a study, numbered as its runs are."""
    names = RunColumns.of(study.runs).run_id
    kinds = metric_kinds(fields)
    rows = in_line_order(fields, stated(fields, kinds))
    check_scopes(fields, rows)
    _check_listed(study, fields, rows.run)
    marks, printed = marks_of(fields, study.runs), printed_of(fields, len(names))
    lost = without_final_loss(fields, len(names))
    rows, rest = once(rows), fields.take(np.flatnonzero(kinds < 0))
    known = usable(rows.value)
    odd, rows = rows.take(~known), rows.take(known) if not known.all() else rows
    world = final(rows, "world_size", len(names))
    sizes = sizes_of(study.runs, world, named_ranks(rows, len(names)))
    batch = final(rows, "global_batch_size", len(names))
    steps = summarise_steps(rows, study.warmup, sizes.ranks, batch)
    found = _measured(study, rows, steps, sizes.ranks)
    found["global_batch"] = np.where(np.isnan(batch), steps.samples_per_step, batch)
    found |= reduced(rows, rest, study.warmup, sizes.ranks)
    found["optimiser_steps"] = optimiser_steps(rest, rows, len(names))
    found["samples_seen"] = samples_seen(rows, found["optimiser_steps"], found["global_batch"])
    found |= time_shares(rest, study.warmup, steps.mean)
    found["startup_s"] = startup_s(steps, found["first_step_time_s"])
    found |= use_of_hardware(rest, study.warmup, sizes, found, tokens_of_sample(printed, found))
    found["job_energy_per_sample_j"] = job_energy_per_sample_j(study.runs, found["samples_seen"])
    states, why = _verdicts(study, rows, steps, (sizes.planned, world), found)
    why = with_bandwidths(why, names, fields)
    flags = with_lost(run_flags(study.runs, rows, odd, steps.steps, sizes.ranks), lost)
    conditions = conditions_of(rest, study.runs)
    found = {name: without_values(values) for name, values in found.items()}
    found |= {"state": states, "problem": why, "flags": flags, "conditions": conditions}
    return _Piece(sizes, found, printed, marks)


def _measured(
    study: ExpectedStudy, rows: Rows, steps: StepSummary, ranks: Floats
) -> dict[str, Any]:
    runs = len(ranks)
    printed = reported_rate(rows.named("samples_per_second"), study.warmup, ranks)
    return {
        "steps": steps.steps,
        "warmup_steps": steps.warmup_steps,
        "step_time_s": np.where(steps.seen > 0, steps.step_time_s, stated_step_time_s(rows, runs)),
        "step_time_mean_s": steps.mean,
        **steps.quantiles,
        "printed_rate": positive(printed),
        "samples_per_second": positive(sample_rate(steps, printed)),
        "epoch_time_s": epoch_time_s(rows, runs),
        "epochs": epochs(rows, runs),
        "accuracy": accuracy(rows, runs),
        "whole_seconds": whole_seconds(rows, runs),
    }


def _verdicts(
    study: ExpectedStudy,
    rows: Rows,
    steps: StepSummary,
    ranks: tuple[Floats, Floats],
    found: Mapping[str, Any],
) -> tuple[Shared[str], Shared[str]]:
    """Return state and problem of each run; `ranks` are those planned and those logged."""
    columns = RunColumns.of(study.runs)
    kind = np.asarray(columns.kind, dtype=np.int64)
    why = Shared([run.problem for run in columns.kinds], kind)
    ok: Mask = np.array([run.state == OK for run in columns.kinds], dtype=bool)[kind]
    new: dict[int, str] = {}
    planned, world = ranks
    apart = ok & ~np.isnan(planned) & ~np.isnan(world) & (planned != world)
    for run in np.flatnonzero(apart).tolist():
        # Ranks that train independently look like perfect scaling.
        word = "planned" if study.runs[run].topology else "stated"
        new[run] = f"{CONTRADICTED}{world[run]:g}, {word} {planned[run]:.0f}"
    unmeasured = (steps.seen > 0) & ~(steps.step_time_s > 0)
    nothing = np.all([np.isnan(found[metric.key]) for metric in RESULTS], axis=0)
    for run, problem in problems(rows, ok & ~apart & (unmeasured | nothing), steps, study):
        new[run] = problem if unmeasured[run] else why.at(run) or problem
    states = Shared([run.state for run in columns.kinds], kind)
    return states.changed(dict.fromkeys(new, UNPARSED)), why.changed(new)


def _frame(study: ExpectedStudy, sizes: Sizes, found: Mapping[str, Any]) -> pd.DataFrame:
    runs = RunColumns.of(study.runs)
    kind = np.asarray(runs.kind, dtype=np.int64)
    short = [{axis_name(key): value for key, value in one.axes.items()} for one in runs.kinds]
    keys = dict.fromkeys(name for axes in short for name in axes)
    axes = {f"axis.{name}": axis_column([one.get(name) for one in short], kind) for name in keys}
    stated_cells: dict[str, Any] = {
        name: Shared([getattr(one, name) for one in runs.kinds], kind)
        for name in (
            "started",
            "block",
            "node_list",
            "transport",
            "restarts",
            "lost_to_restarts_s",
        )
    }
    stated_cells |= {
        name: getattr(runs, name) for name in ("run_id", "repetition", "wall_s", "job_energy_j")
    }
    sized = {name: getattr(sizes, name) for name in COUNTS}
    cells = {**stated_cells, **sized, **found, "series": series_of(runs, sizes.ranks)}
    # Names are read by one or two of a million runs, so they are not packed.
    table = {"run_id": pd.Series(cells["run_id"], dtype=object), "series": None} | axes
    table |= {name: typed_column(name, cells[name]) for name in COLUMNS[1:]}
    # Columns of their own, so that those without a value need no memory.
    frame: pd.DataFrame = pd.DataFrame(table, copy=False)
    return frame


def _check_names(study: ExpectedStudy) -> None:
    names = RunColumns.of(study.runs).run_id
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise ReportError(
            f"{study.name}: two runs are called {twice}; their lines cannot be distinguished",
            "give the logs different names",
        )


def _check_listed(study: ExpectedStudy, fields: RecordArrays, run: Ints) -> None:
    strangers = np.unique(run[run >= len(study.runs)]).tolist()
    if strangers:
        first = min(fields.run.names[code] for code in strangers)
        raise ReportError(f"{study.name}: records of runs that it does not list: {first}")


def _joined_tables(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Concatenate the columns of tables, which are arrays or lists."""
    if len(tables) == 1:
        return dict(tables[0])
    return {name: _joined([table[name] for table in tables]) for name in tables[0]}


def _joined(columns: Sequence[Any]) -> Any:
    if isinstance(columns[0], Shared):
        return joined(columns)
    if not any(any(column.strides) for column in columns):
        return np.broadcast_to(NAN, sum(map(len, columns)))
    return np.concatenate(columns)
