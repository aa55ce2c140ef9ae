"""ExpectedStudy and records -> one row per requested run, in any state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import RESULTS, RUN_METRICS
from hpc_train.jobs.operations import FLOPS, PARAMETERS, PEAK, number_of, peak_tflops
from hpc_train.jobs.study import Warmup, axis_name, series_label, size_of
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import CONTRADICTED, ExpectedRun, ExpectedStudy
from hpc_train.runs.run import JobState
from hpc_train.scaling.condition_differences import (
    Printed,
    conditions_of,
    printed_of,
    with_programs,
)
from hpc_train.scaling.group_reductions import (
    NAN,
    Floats,
    bounded,
    counts,
    known,
    last_of,
    per_run,
    positive,
    starts,
    usable,
)
from hpc_train.scaling.measurements import (
    GLOBAL,
    KINDS,
    PER_GPU,
    PER_RANK,
    Rows,
    check_scopes,
    metric_kinds,
    once,
    stated,
)
from hpc_train.scaling.record_arrays import (
    Ints,
    Mask,
    RecordArrays,
    packed,
    rate_questions,
    record_arrays,
)
from hpc_train.scaling.run_flags import (
    LOSS_LOST,
    Flag,
    FlagCode,
    problems,
    run_flags,
    without_final_loss,
)
from hpc_train.scaling.run_values import (
    accuracy,
    epoch_time_s,
    epochs,
    final,
    optimiser_steps,
    reduced,
    rows_of,
    samples_seen,
    stated_step_time_s,
    time_shares,
    typical,
    whole_seconds,
)
from hpc_train.scaling.step_times import (
    StepSummary,
    means_after_warmup,
    measured,
    of_last,
    reported_rate,
    step_totals,
    summarise_steps,
)

COUNTS = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus", "cpus_per_task")
_WHOLE = (*COUNTS, "repetition", *(metric.key for metric in RUN_METRICS if metric.counts))
_FLOATS = ("started", *(metric.key for metric in RUN_METRICS if not metric.counts))


def typed_column(name: str, values: Any) -> Any:
    """Return a column of the run table: whole numbers, floats, or objects."""
    if name in _WHOLE:
        return pd.array(values, dtype="Int64")
    if name in _FLOATS:
        return np.asarray(values, dtype=np.float64)
    if isinstance(values, np.ndarray):
        return values
    # A list of tuples or dicts would become several columns.
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return pd.Series(found, dtype=object)


OK = JobState.COMPLETED.value
UNPARSED = "UNPARSED"
COLUMNS = (
    "run_id", "series", "repetition", "started", "block", "node_list", "state", "problem", *COUNTS,
    *(metric.key for metric in RUN_METRICS), "whole_seconds", "transport", "conditions", "flags",
)  # fmt: skip


# What a study states of its runs.
_STATED = (
    "run_id", "repetition", "started", "block", "node_list", "transport", "restarts",
    "lost_to_restarts_s", "wall_s",
)  # fmt: skip


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
    names = [run.run_id for run in study.runs]
    fields, kinds, rows = _checked(study, records)
    printed = printed_of(fields, len(names))
    lost = without_final_loss(fields, len(names))
    rows, rest = once(rows), fields.take(np.flatnonzero(kinds < 0))
    known = usable(rows.value)
    odd, rows = rows.take(~known), rows.take(known) if not known.all() else rows
    world = final(rows, "world_size", len(names))
    sizes = sizes_of(study.runs, world)
    batch = final(rows, "global_batch_size", len(names))
    batch = np.where(np.isnan(batch), stated_batch(study, batch, sizes.ranks), batch)
    steps = summarise_steps(rows, study.warmup, sizes.ranks, batch)
    batch = np.where(np.isnan(batch), steps.samples_per_step, batch)
    found = _measured(study, rows, steps, sizes.ranks, batch)
    found |= _derived(study, (rows, rest), steps, sizes.ranks, found)
    found |= use_of_hardware(rest, study.warmup, sizes, found, tokens_of_sample(printed, found))
    states, why = _verdicts(study, rows, steps, (sizes.planned, world), found)
    asked = rate_questions(fields)
    why = [
        asked.get(name, one) if state == UNPARSED else one
        for name, state, one in zip(names, states, why, strict=True)
    ]
    # A table states the steps behind its one time.
    total = np.nan_to_num(found["optimiser_steps"]).astype(np.int64)
    counted = np.where(steps.seen > 0, steps.steps, total)
    flags = run_flags(study.runs, rows, odd, counted, sizes.ranks)
    flags = [(*own, LOSS_LOST) if run in lost else own for run, own in enumerate(flags)]
    conditions = with_programs(printed, conditions_of(rest, study.runs))
    found |= {"state": states, "problem": why, "flags": flags, "conditions": conditions}
    found |= computed_operations(found, sizes)
    found["flags"] = with_contradictions(found)
    return _frame(study, sizes, found)


def stated_batch(study: ExpectedStudy, recorded: Floats, ranks: Floats) -> Floats:
    """Return the global batch that a person stated: of each rank, if the scaling is weak.

    Raises:
        ReportError: a run recorded another one.
    """
    if study.batch is None:
        return np.full(len(ranks), NAN)
    stated = study.batch * (ranks if study.scaling == "weak" else np.ones(len(ranks)))
    wrong = np.flatnonzero(np.abs(recorded - stated) > 0.5)
    if len(wrong):
        run = int(wrong[0])
        raise ReportError(
            f"a global batch of {stated[run]:g} is stated, but {study.runs[run].run_id} recorded "
            f"{recorded[run]:g}",
            "leave --batch out",
        )
    return stated


def _checked(
    study: ExpectedStudy, records: RecordArrays | pd.DataFrame | Iterable[Record]
) -> tuple[RecordArrays, Ints, Rows]:
    """Return the records, the kind of each, and the measurements in the order of their lines."""
    names = [run.run_id for run in study.runs]
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise ReportError(
            f"{study.name}: two runs are called {twice}; their lines cannot be distinguished",
            "give the logs different names",
        )
    fields = record_arrays(records)
    fields = fields._replace(run=fields.run.led_by([run.run_id for run in study.runs]))
    kinds = metric_kinds(fields)
    rows = in_line_order(fields, stated(fields, kinds))
    check_scopes(fields, rows)
    strangers = np.unique(rows.run[rows.run >= len(study.runs)]).tolist()
    if strangers:
        first = min(fields.run.names[code] for code in strangers)
        raise ReportError(f"{study.name}: records of runs that it does not list: {first}")
    return fields, kinds, rows


def _derived(
    study: ExpectedStudy,
    measured: tuple[Rows, RecordArrays],
    steps: StepSummary,
    ranks: Floats,
    values: Mapping[str, Any],
) -> dict[str, Any]:
    (rows, rest), batch = measured, values["global_batch"]
    found: dict[str, Any] = reduced(rows, rest, study.warmup, ranks)
    tokens = positive(_share(final(rows, "tokens_per_step", len(ranks)), values["step_time_s"]))
    found["tokens_per_second"] = _either(tokens, found["tokens_per_second"])
    found["optimiser_steps"] = optimiser_steps(rest, rows, len(ranks))
    found["samples_seen"] = samples_seen(rows, found["optimiser_steps"], batch)
    found |= time_shares(rest, study.warmup, steps.mean)
    found["startup_s"] = startup_s(steps, found["first_step_time_s"])
    return found


def _measured(
    study: ExpectedStudy, rows: Rows, steps: StepSummary, ranks: Floats, batch: Floats
) -> dict[str, Any]:
    runs = len(ranks)
    printed = reported_rate(rows.named("samples_per_second"), study.warmup, ranks)
    step_time_s = np.where(steps.seen > 0, steps.step_time_s, stated_step_time_s(rows, runs))
    return {
        "global_batch": batch,
        "tokens_per_step": final(rows, "tokens_per_step", runs),
        "steps": steps.steps,
        "warmup_steps": steps.warmup_steps,
        "step_time_s": step_time_s,
        "step_time_mean_s": steps.mean,
        **steps.quantiles,
        "printed_rate": positive(printed),
        "samples_per_second": positive(
            # A run within its warm-up has no result, whatever it printed.
            _either(
                np.where(
                    (steps.seen > 0) & (steps.steps == 0),
                    NAN,
                    _either(steps.samples_per_second, printed),
                ),
                _share(batch, step_time_s),
            )
        ),
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
) -> tuple[list[str], list[str]]:
    """Return state and problem of each run; `ranks` are those planned and those logged."""
    states, why = [run.state for run in study.runs], [run.problem for run in study.runs]
    ok: Mask = np.array([state == OK for state in states], dtype=bool)
    new: dict[int, str] = {}
    planned, world = ranks
    apart = ok & ~np.isnan(planned) & ~np.isnan(world) & (planned != world)
    for run in np.flatnonzero(apart).tolist():
        # Ranks that train independently look like perfect scaling.
        word = "planned" if study.runs[run].topology else "stated"
        new[run] = f"{CONTRADICTED}{world[run]:g}, {word} {planned[run]:.0f}"
    named = np.array([run.ranks for run in study.runs], dtype=np.float64)
    for run in np.flatnonzero(ok & ~apart & (named > world)).tolist():
        new[run] = f"{CONTRADICTED}{world[run]:g}, but rank {named[run] - 1:.0f} prints"
    unmeasured = (steps.seen > 0) & ~(steps.step_time_s > 0)
    nothing = np.all([np.isnan(found[metric.key]) for metric in RESULTS], axis=0)
    for run, problem in problems(rows, ok & ~apart & (unmeasured | nothing), steps, study):
        new[run] = problem if unmeasured[run] else why[run] or problem
    for run, problem in new.items():
        states[run], why[run] = UNPARSED, problem
    return states, why


def _frame(study: ExpectedStudy, sizes: Sizes, found: Mapping[str, Any]) -> pd.DataFrame:
    runs = study.runs
    short = [{axis_name(key): value for key, value in one.axes.items()} for one in runs]
    axes = {
        f"axis.{name}": pd.Series([own.get(name) for own in short], dtype=object)
        for name in dict.fromkeys(name for own in short for name in own)
    }
    cells: dict[str, Any] = {name: [getattr(one, name) for one in runs] for name in _STATED}
    cells |= {name: getattr(sizes, name) for name in COUNTS}
    cells |= {**found, "series": series_of(runs, sizes.ranks)}
    table = {name: typed_column(name, cells[name]) for name in COLUMNS}
    table = {"run_id": table.pop("run_id"), "series": table.pop("series"), **axes, **table}
    frame: pd.DataFrame = pd.DataFrame(table)
    return frame


def startup_s(steps: StepSummary, first_step_s: Floats) -> Floats:
    """Return the time [s] that the steps left out took beyond their number of usual steps.

    Sum of (t - T) over the steps of the warm-up, T the median of the measured steps; the first
    step took `first_step_s` if that is longer, as it includes initialisation and compilation. NaN
    without a step left out and without a time of the first step; never below 0.
    """
    rows, runs = steps.left_out, len(first_step_s)
    first = starts(rows.run)
    beyond = (rows.value - steps.step_time_s[rows.run]) * rows.steps
    spent = per_run("sum", beyond, rows.run, runs)
    one = np.full(runs, NAN)
    one[rows.run[first]] = beyond[first]
    init = first_step_s - steps.step_time_s
    extra = np.fmax(init - np.where(np.isnan(one), 0.0, one), 0.0)
    both = np.where(np.isnan(init), spent, np.where(np.isnan(spent), init, spent + extra))
    return np.asarray(known(np.where(np.isnan(both), NAN, np.maximum(both, 0.0))))


_WITHOUT_STEPS = ("generic", "espnet")
_REPEATED = ("step_time", "epoch_time", "samples_per_second", "tokens_per_second")


def in_line_order(fields: RecordArrays, rows: Rows) -> Rows:
    """Return the rows with a number for each of several values of one metric of a log.

    Such rows are `numbered`: 1 is the first value that was printed, which may be that of step 10.
    A single value stays that of the whole run, and a log that names steps is not changed.
    """
    guessed = fields.parser.among(_WITHOUT_STEPS)[rows.place] >= 0
    if not guessed.any():
        return rows
    repeated = np.isin(rows.kind, [KINDS.index(name) for name in _REPEATED])
    own = np.flatnonzero(guessed & repeated)
    if not len(own):
        return rows
    source = fields.source.codes[rows.place[own]]
    key = pd.Series(packed(rows.kind[own], rows.run[own], rows.scope[own], source, rows.rank[own]))
    groups = key.groupby(key, sort=False)
    named = pd.Series(rows.stepped[own]).groupby(key, sort=False).transform("any").to_numpy()
    chosen = (groups.transform("size").to_numpy() > 1) & ~named
    step, numbered = rows.step.copy(), rows.numbered.copy()
    step[own[chosen]] = 1 + groups.cumcount().to_numpy()[chosen]
    numbered[own[chosen]] = True
    return rows._replace(step=step, numbered=numbered)


# Times are printed with two digits, and a mean differs from a median.
_TOLERANCE = 1.2


def with_contradictions(found: Mapping[str, Any]) -> list[tuple[Flag, ...]]:
    """Return the flags of each run, with one more if its rate, step time and batch disagree.

    The columns are those of `run_frame`, and `printed_rate` [samples/s]. A rate above batch / step
    time is impossible. One below it is a contradiction only between the cells of a table: programs
    include evaluations in their rates. The step time is the median or the mean, whichever fits.
    """
    own = found["conditions"]
    stated = np.array(["parser" not in one for one in own], dtype=bool)
    texts = pd.Series([one.get("sequence_length") for one in own], dtype=object)
    length = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    median, mean = found["step_time_s"], found["step_time_mean_s"]
    steps = np.stack([median, np.where(np.isnan(mean), median, mean)])
    flags: list[tuple[Flag, ...]] = list(found["flags"])
    for item, rate, work, exact in (
        ("samples", found["printed_rate"], found["global_batch"], stated),
        ("tokens", found["tokens_per_second"], found["global_batch"] * length, stated & False),
    ):
        with np.errstate(all="ignore"):
            ratio = known(rate * steps / work)
        wrong = (ratio.min(0) > _TOLERANCE) | (exact & (ratio.max(0) < 1 / _TOLERANCE))
        for run in np.flatnonzero(wrong).tolist():
            detail = (
                f"{rate[run]:.4g} {item}/s in steps of {median[run]:.4g} s are "
                f"{rate[run] * median[run]:.4g} {item} a step, not {work[run]:g}"
            )
            flags[run] = (*flags[run], Flag(FlagCode.CONTRADICTION, detail))
    return flags


# Of a parameter for each token: two operations forward, four backward.
_PER_PARAMETER = 6.0


def computed_operations(found: Mapping[str, Any], sizes: Sizes) -> dict[str, Floats]:
    """Return TFLOP/s per GPU and MFU of the runs that state their operations, NaN for others.

    TFLOP/s = flops_per_sample x samples/s; without that number 6 N x tokens/s, N the parameters
    (Chowdhery et al., PaLM, 2022, appendix B; Narayanan et al., Megatron-LM, SC21), without the
    attention (12 L d s per token) and without recomputed activations. MFU = TFLOP/s per GPU,
    printed or else computed, over the peak. A run that printed the value has none computed.
    """
    conditions = found["conditions"]
    per_sample = _numbers(conditions, lambda own: number_of(own.get(FLOPS)))
    parameters = _numbers(conditions, lambda own: number_of(own.get(PARAMETERS)))
    length = _numbers(conditions, lambda own: number_of(own.get("sequence_length")))
    peak = _numbers(conditions, lambda own: peak_tflops(own.get(PEAK), own.get("precision")))
    rate, tokens = found["samples_per_second"], found["tokens_per_second"]
    gpus = np.where(sizes.gpus > 0, sizes.gpus, np.nan)
    by_tokens = _product(_PER_PARAMETER * parameters, _either(tokens, _product(rate, length)))
    each = positive(_share(_either(_product(per_sample, rate), by_tokens), gpus * 1e12))
    printed = found["tflops_per_gpu"]
    mfu = _share(_either(printed, each), peak)
    return {
        "tflops_per_gpu_computed": np.where(np.isnan(printed), each, np.nan),
        "mfu_computed": np.where(np.isnan(found["mfu"]), mfu, np.nan),
    }


def _numbers(
    conditions: Sequence[Mapping[str, str]], number: Callable[[Mapping[str, str]], float | None]
) -> Floats:
    return np.array([number(own) for own in conditions], dtype=np.float64)


def _either(first: Floats, second: Floats) -> Floats:
    return np.where(np.isnan(first), second, first)


@bounded
def _product(one: Any, other: Any) -> Any:
    return one * other


@bounded
def _share(part: Any, whole: Any) -> Any:
    return part / whole


# Records -> operations, power and energy of each run, each in one scope.
#
# Values per rank become one of the job only if every rank has one; one GPU per rank is assumed
# where a value is per GPU. Values that are not above 0 are unknown: a counter that is absent reads
# 0.


def use_of_hardware(
    rest: RecordArrays,
    warmup: Warmup,
    sizes: Sizes,
    found: Mapping[str, Any],
    tokens: Floats,
) -> dict[str, Floats]:
    """Return TFLOP/s per GPU, power [W] and energy [J] of each run, NaN where unknown.

    `found` has the other values of the runs, `tokens` the tokens of a sample.
    """
    runs = len(sizes.ranks)
    power, energy = rows_of(rest, "power", runs), rows_of(rest, "energy", runs)
    # As stated of the run, else of its steps; power and energy of a step are of the measured ones.
    used = _sums(_measured_steps(step_totals(power, sizes.ranks), warmup), runs)
    power_w = positive(_either(_of_all_ranks(power, sizes.ranks), _ratio(*used)))
    whole = _sums(step_totals(energy, sizes.ranks), runs)[0]
    energy_j = positive(_either(_of_all_ranks(energy, sizes.ranks), whole))
    used = _sums(_measured_steps(step_totals(energy, sizes.ranks), warmup), runs)
    per_step = positive(_ratio(*used))
    by_step = _ratio(per_step, found["global_batch"])
    by_run = _ratio(energy_j, found["samples_seen"])
    per_sample = positive(_either(by_step, by_run))
    by_sample = _ratio(per_sample, tokens)
    by_step = _ratio(per_step, found["tokens_per_second"] * found["step_time_mean_s"])
    return {
        "tflops_per_gpu": _tflops_per_gpu(rows_of(rest, "tflops", runs), warmup, sizes),
        "power_w": power_w,
        "power_per_rank_w": np.where(
            np.isnan(power_w), _power_per_rank_w(power, warmup, runs), np.nan
        ),
        "energy_j": energy_j,
        "energy_per_sample_j": per_sample,
        "energy_per_token_j": positive(_either(by_sample, by_step)),
        "power_per_rate_j": _ratio(power_w, found["samples_per_second"]),
    }


def tokens_of_sample(printed: Printed, found: Mapping[str, Any]) -> Floats:
    """Return the printed length of a sequence, else tokens/s over samples/s; NaN without."""
    ratio = _ratio(found["tokens_per_second"], found["samples_per_second"])
    lengths = np.full(len(ratio), np.nan)
    for run, text in printed.lengths.items():
        lengths[run] = float(text)
    return np.where(np.isnan(lengths), ratio, lengths)


def _tflops_per_gpu(rows: Rows, warmup: Warmup, sizes: Sizes) -> Floats:
    """Return the median of the measured steps; a total is divided by the number of GPUs."""
    whole = typical(rows.take(rows.scope == GLOBAL), warmup, sizes.ranks)
    each = typical(rows.take(rows.scope != GLOBAL), warmup, sizes.ranks)
    gpus = np.where(sizes.gpus > 0, sizes.gpus, sizes.ranks)
    return positive(np.where(np.isnan(each), _ratio(whole, gpus), each))


def _power_per_rank_w(rows: Rows, warmup: Warmup, runs: int) -> Floats:
    """Return the mean over the ranks that printed their power."""
    own = rows.take(rows.scope != GLOBAL)
    kept = means_after_warmup(own, warmup.steps)
    last = of_last(own.take(~own.stepped))
    stated_values = per_run("mean", last.value, last.run, runs)
    by_steps = per_run("mean", kept.value, kept.run, runs)
    return positive(np.where(np.isnan(stated_values), by_steps, stated_values))


def _sums(stepwise: Rows, runs: int) -> tuple[Floats, Floats]:
    """Return the sum of the values of each run over its steps, and the number of steps."""
    return (
        per_run("sum", stepwise.value * stepwise.steps, stepwise.run, runs),
        per_run("sum", stepwise.steps.astype(float), stepwise.run, runs),
    )


def _of_all_ranks(rows: Rows, ranks: Floats) -> Floats:
    """Return what is stated of the whole run: of the job, else the sum over all of its ranks."""
    runs, rows = len(ranks), rows.take(~rows.stepped)
    whole = rows.take(rows.scope == GLOBAL)
    own = of_last(rows.take(rows.scope == PER_RANK))
    summed = per_run("sum", own.value, own.run, runs)
    summed[counts(own.run, runs) != ranks] = np.nan
    gpus = of_last(rows.take(rows.scope == PER_GPU))
    scaled = per_run("mean", gpus.value, gpus.run, runs) * ranks
    found = last_of(whole.value, whole.run, runs)
    for other in (summed, scaled):
        found = np.where(np.isnan(found), other, found)
    return found


def _measured_steps(stepwise: Rows, warmup: Warmup) -> Rows:
    by_steps = Warmup(steps=warmup.steps)
    return stepwise.take(
        measured(stepwise.run, stepwise.step, stepwise.value * 0, stepwise.steps, by_steps)
    )


@bounded
def _ratio(value: Any, unit: Any) -> Any:
    return value / np.where(np.asarray(unit) > 0, unit, np.nan)


NAMES = ("nodes", "gpus_per_node", "tasks_per_node")
# A larger number in a log is an error.
_MOST_RANKS = 10**9


class Sizes(NamedTuple):
    """Sizes of each run, NaN if unknown.

    `planned` are the ranks of the plan or those stated by a user, else NaN.
    """

    nodes: Floats
    gpus_per_node: Floats
    tasks_per_node: Floats
    gpus: Floats
    cpus_per_task: Floats
    ranks: Floats
    planned: Floats


def sizes_of(runs: Sequence[ExpectedRun], world: Floats) -> Sizes:
    """Return the sizes of runs.

    `world` is the number of ranks that a log states. A value stated by a user takes precedence. The
    ranks that lines name are those that printed; there may be more.
    """
    stated = [[_stated(run, name) for run in runs] for name in NAMES]
    gpus = [_gpus(run, nodes, each) for run, nodes, each, _ in zip(runs, *stated, strict=True)]
    cpus = [run.topology.cpus_per_task if run.topology else None for run in runs]
    likely = (world >= 1) & (world <= _MOST_RANKS)
    known = np.where(likely, np.floor(world), np.nan)
    planned = np.array([_planned(run) for run in runs], dtype=np.float64)
    ranks = np.where(np.isnan(planned), known, planned)
    sizes = (np.array(column, dtype=np.float64) for column in (*stated, gpus, cpus))
    return Sizes._make([*sizes, ranks, planned])


def series_of(runs: Sequence[ExpectedRun], ranks: Floats) -> list[str]:
    """Return the name of each run's series.

    Logs without a number of ranks are not assumed to have the same size.
    """
    alone = np.isnan(ranks) & (len(runs) > 1)
    return [
        run.run_id
        if is_alone and not (run.topology or run.axes or run.sizes)
        else series_label(run.axes)
        for run, is_alone in zip(runs, alone.tolist(), strict=True)
    ]


def _stated(run: ExpectedRun, name: str) -> int | None:
    if run.topology:
        size: int = getattr(run.topology, name)
        return size
    return run.sizes[name] if name in run.sizes else size_of(run.axes, name)


def _gpus(run: ExpectedRun, nodes: int | None, each: int | None) -> int | None:
    if nodes is None or each is None:
        return run.sizes.get("gpus")
    return nodes * each


def _planned(run: ExpectedRun) -> float:
    if run.topology:
        return run.topology.world_size
    each, nodes = run.sizes.get("tasks_per_node"), run.sizes.get("nodes")
    product = each * nodes if each and nodes else float("nan")
    return run.sizes.get("ranks", product)
