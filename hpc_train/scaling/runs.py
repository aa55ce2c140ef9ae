"""ExpectedStudy and records -> one row per requested run, in any state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import RATE_RECORDS, RESULTS, RUN_METRICS
from hpc_train.jobs.operations import FLOPS, PARAMETERS, PEAK, number_of, peak_tflops
from hpc_train.jobs.study import Warmup, axis_name, series_label, size_of
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import CONTRADICTED, ExpectedRun, ExpectedStudy
from hpc_train.runs.run import JobState
from hpc_train.scaling.group_reductions import NAN, bounded, known, positive, usable
from hpc_train.scaling.measurements import (
    GLOBAL,
    QUANTILES,
    SCOPES,
    Column,
    after_steps,
    by_step,
    check_scopes,
    measurements,
    numbered,
    of_all_ranks,
    of_last,
    per_run,
    reported_rate,
    step_totals,
    summarise_steps,
    typical,
    whole_run,
)
from hpc_train.scaling.record_arrays import rate_questions, record_arrays
from hpc_train.scaling.run_flags import (
    LOSS_LOST,
    Flag,
    FlagCode,
    problem_of,
    run_flags,
    without_final_loss,
)

OK = JobState.COMPLETED.value
UNPARSED = "UNPARSED"
COUNTS = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus", "cpus_per_task")
_WHOLE = (*COUNTS, "repetition", *(metric.key for metric in RUN_METRICS if metric.counts))
_FLOATS = ("started", *(metric.key for metric in RUN_METRICS if not metric.counts))
COLUMNS = (
    "run_id", "series", "repetition", "started", "block", "node_list", "state", "problem", *COUNTS,
    *(metric.key for metric in RUN_METRICS), "whole_seconds", "transport", "conditions", "flags",
)  # fmt: skip
# What a study states of its runs.
_STATED = (
    "run_id", "repetition", "started", "block", "node_list", "transport", "restarts",
    "lost_to_restarts_s", "wall_s",
)  # fmt: skip
# Their records are no measurements of a step or a run.
_NO_VALUES = ("condition", "not_finite", "parameters")
# Timers of Megatron and DeepSpeed; those of the slowest rank end in ` max`.
_TIMERS = {
    "data_share": re.compile(r"(?:^|-)data(?:-?load\w*|-time|-wait)?(?: max)?$|batch-generator"),
    "communication_share": re.compile(
        r"all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|grads-sync|-send|-recv|(?:^|-)comm"
    ),
}
_STEPPED = ("step_time", "samples", *RATE_RECORDS)
# A larger number in a log is an error.
_MOST_RANKS = 10**9


class _Measured(NamedTuple):
    """The usable measurements by metric, and what a study says of all its runs."""

    by_metric: Mapping[Any, pd.DataFrame]
    none: pd.DataFrame
    warmup: Warmup

    def named(self, metric: str, variant: str = "") -> pd.DataFrame:
        """Return those without a variant, and those whose variant begins with this one."""
        own = self.by_metric.get(metric, self.none)
        plain = own["variant"] == ""
        if variant:
            plain |= own["variant"].astype(str).str.startswith(variant)
        return own[plain].sort_values("run", kind="stable") if variant else own[plain]


def run_frame(study: ExpectedStudy, records: pd.DataFrame | Iterable[Record]) -> pd.DataFrame:
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
    given = record_arrays(records)
    own, rows = _checked(study, given)
    sound = usable(rows["value"])
    odd, rows = rows[~sound & _of_table(rows)], rows[sound & (rows["run"] >= 0)]
    by_metric = dict(iter(rows.groupby("metric", observed=True)))
    measured = _Measured(by_metric, rows.iloc[:0], study.warmup)
    found = sizes_of(study.runs, per_run(measured.named("world_size"), "last"))
    left_out = _add_steps(found, measured, study)
    _add_values(found, measured)
    found["startup_s"] = _startup_s(left_out, found)
    lengths = _sequence_lengths(own)
    _add_use_of_hardware(found, measured, lengths)
    found["conditions"] = _objects(
        _with_programs(own, _printed_conditions(own, study.runs), lengths)
    )
    _add_computed_operations(found)
    _add_verdicts(found, study, rows, rate_questions(given))
    # A table states the steps behind its one time.
    counted = found["steps"].where(found["seen"] > 0, found["optimiser_steps"].fillna(0))
    flags = run_flags(study.runs, rows, odd, counted, found["ranks"])
    lost = without_final_loss(own)
    flags = [
        (*own_flags, LOSS_LOST) if run in lost else own_flags for run, own_flags in enumerate(flags)
    ]
    found["flags"] = _objects(flags)
    found["flags"] = _objects(with_contradictions(found))
    return _typed(study, found)


def _checked(study: ExpectedStudy, records: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the records with the numbers of their runs, and the measurements of the table."""
    names = [run.run_id for run in study.runs]
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise ReportError(
            f"{study.name}: two runs are called {twice}; their lines cannot be distinguished",
            "give the logs different names",
        )
    own = numbered(records, names)
    unclear = _of_table(own) & (own["scope"] == "unknown")
    rows = measurements(own[~unclear & ~own["metric"].isin(_NO_VALUES)], in_line_order=True)
    check_scopes(rows, names)
    strangers = records.loc[rows.index[(rows["run"] < 0) & _of_table(rows)], "run"]
    if len(strangers):
        first = min(strangers.unique())
        raise ReportError(f"{study.name}: records of runs that it does not list: {first}")
    return own, rows


def _of_table(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which rows have a metric whose scope counts.

    Variants (of validation, a running average) are not compared in a table.
    """
    return rows["metric"].isin(SCOPES) & (rows["variant"] == "")


def _objects(values: Sequence[Any]) -> pd.Series[Any]:
    # A list of tuples or dicts would become several columns.
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return pd.Series(found, dtype=object)


def stated_batch(study: ExpectedStudy, recorded: Column, ranks: Column) -> Column:
    """Return the global batch that a person stated: of each rank, if the scaling is weak.

    Raises:
        ReportError: a run recorded another one.
    """
    if study.batch is None:
        return recorded * NAN
    stated = study.batch * (ranks if study.scaling == "weak" else 0 * ranks.fillna(0) + 1)
    for run in recorded.index[(recorded - stated).abs() > 0.5]:
        raise ReportError(
            f"a global batch of {stated[run]:g} is stated, but {study.runs[run].run_id} recorded "
            f"{recorded[run]:g}",
            "leave --batch out",
        )
    return stated


def _add_steps(found: pd.DataFrame, measured: _Measured, study: ExpectedStudy) -> pd.DataFrame:
    """Add batch, step times and the rate in samples; return the steps that were left out."""
    named, warmup = measured.named, measured.warmup
    recorded = per_run(named("global_batch_size"), "last").reindex(found.index)
    batch = recorded.fillna(stated_batch(study, recorded, found["ranks"]))
    steps = summarise_steps(
        named("step_time"), named("samples"), warmup, found[["ranks"]].assign(batch=batch)
    )
    own = steps.values
    names = ["seen", "warmup_steps", "steps", "step_time_mean_s", *QUANTILES]
    found[names] = own[names]
    found["global_batch"] = batch.fillna(own["samples_per_step"])
    stated = per_run(whole_run(named("step_time")), "last").reindex(found.index)
    found["step_time_s"] = own["step_time_s"].where(own["seen"] > 0, stated)
    printed = reported_rate(named("samples_per_second"), warmup, found["ranks"])
    found["printed_rate"] = positive(printed.reindex(found.index))
    rate = own["samples_per_second"].fillna(printed.reindex(found.index))
    # A run within its warm-up has no result, whatever it printed.
    rate = rate.mask((own["seen"] > 0) & (own["steps"] == 0))
    by_batch = _share(found["global_batch"], found["step_time_s"])
    found["samples_per_second"] = positive(rate.fillna(by_batch))
    return steps.left_out


def _add_values(found: pd.DataFrame, measured: _Measured) -> None:
    """Add the metrics with a rule, then those that follow from several.

    `last`: the last value, whichever rank printed it. `highest`: the largest of all ranks and
    steps. `median`: of the measured steps, mean over ranks; else the value of the whole run.
    `rate`: of all ranks, by `reported_rate`.
    """
    named, warmup = measured.named, measured.warmup
    rules: dict[str, Callable[[pd.DataFrame], Any]] = {
        "last": lambda rows: per_run(rows, "last"),
        "highest": lambda rows: per_run(rows, "max"),
        "median": lambda rows: typical(rows, warmup),
        "rate": lambda rows: positive(
            reported_rate(rows, warmup, found["ranks"]).reindex(found.index)
        ),
    }
    for metric in RUN_METRICS:
        if metric.of_run in rules:
            found[metric.key] = rules[metric.of_run](named(metric.record, metric.variant))
    found["tokens_per_step"] = per_run(named("tokens_per_step"), "last")
    tokens = positive(_share(found["tokens_per_step"], found["step_time_s"]))
    found["tokens_per_second"] = tokens.fillna(found["tokens_per_second"])
    times = named("epoch_time")
    each = times.groupby(["run", "step"], dropna=False)["value"].max().reset_index()
    found["epochs"] = per_run(each, "size")
    found["epochs"] = found["epochs"].fillna(0)
    # The first of several includes the start.
    first = each.groupby("run").cumcount() == 0
    found["epoch_time_s"] = per_run(each[~first | (each["run"].map(found["epochs"]) == 1)], "mean")
    own = named("accuracy")
    found["accuracy"] = per_run(own[own["scope"] == GLOBAL], "last")
    ranks = per_run(of_last(own[own["scope"] != GLOBAL]), "mean")
    found["accuracy"] = found["accuracy"].fillna(ranks)
    found["whole_seconds"] = False
    for name in ("epoch_time", "time_to_train"):
        times = named(name)
        whole = times.assign(whole=times["value"] % 1 == 0).groupby("run")
        found["whole_seconds"] |= (whole["book"].any() & whole["whole"].all()).reindex(
            found.index, fill_value=False
        )
    found["optimiser_steps"] = _optimiser_steps(named, found.index)
    seen = per_run(whole_run(named("samples")), "last").reindex(found.index)
    found["samples_seen"] = seen.fillna(found["optimiser_steps"] * found["global_batch"])
    phases = measured.by_metric.get("phase_time", measured.none)
    for name, words in _TIMERS.items():
        share = _largest_timer(phases, words, warmup, found.index) / found["step_time_mean_s"]
        found[name] = share.where(share <= 1)


def _optimiser_steps(named: Callable[[str], pd.DataFrame], runs: pd.Index[int]) -> Column:
    """Return the printed number of steps, else that of the last one, plus one if counted from 0."""
    found: Column = pd.Series(NAN, index=runs)
    for metric in _STEPPED:
        own = named(metric)
        step = own[~own["numbered"]].groupby("run")["step"]
        last = (step.max() + (step.min() == 0)).reindex(runs)
        found = np.fmax(found, last)
    return per_run(named("steps"), "max").reindex(runs).fillna(found)


def _largest_timer(
    phases: pd.DataFrame, words: re.Pattern[str], warmup: Warmup, runs: pd.Index[int]
) -> Column:
    """Return the time of a step [s] that these timers state; NaN without.

    Mean over ranks and measured steps of the largest timer of that kind: timers are nested, so
    their sum would count time twice.
    """
    names = [str(name) for name in phases["variant"].unique()]
    fit = [one for one in names if words.search(one.replace("_", "-")) and not one.endswith(" min")]
    most: Column = pd.Series(NAN, index=runs)
    for name in fit:
        kept = after_steps(by_step(phases[phases["variant"] == name], "mean"), warmup)
        most = np.fmax(most, per_run(kept, "mean").reindex(runs))
    return most


def _add_verdicts(
    found: pd.DataFrame, study: ExpectedStudy, rows: pd.DataFrame, asked: Mapping[str, str]
) -> None:
    """Add state and problem of each run."""
    states, why = [run.state for run in study.runs], [run.problem for run in study.runs]
    ok = pd.Series([state == OK for state in states], index=found.index, dtype=bool)
    planned, world, seen = found["planned"], found["world_size"], found["seen"]
    apart = ok & (planned - world).abs().gt(0)
    unmeasured = (seen > 0) & ~(found["step_time_s"] > 0)
    nothing = found[[metric.key for metric in RESULTS]].isna().all(axis=1)
    more = pd.Series([run.ranks for run in study.runs], index=found.index) > world
    own = rows[_of_table(rows)].sort_index()
    of_run = own.groupby("run").indices
    for run in found.index[ok & (apart | unmeasured | nothing | more)]:
        one = study.runs[run]
        if apart[run]:
            # Ranks that train independently look like perfect scaling.
            word = "planned" if one.topology else "stated"
            problem = f"{CONTRADICTED}{world[run]:g}, {word} {planned[run]:.0f}"
        elif unmeasured[run] or nothing[run]:
            problem = problem_of(
                own.iloc[of_run.get(run, [])], seen[run], found.loc[run, "steps"], study
            )
            problem = problem if unmeasured[run] else why[run] or problem
        else:
            problem = f"{CONTRADICTED}{world[run]:g}, but rank {one.ranks - 1:.0f} prints"
        states[run], why[run] = UNPARSED, asked.get(one.run_id, problem)
    found["state"], found["problem"] = states, why


def _typed(study: ExpectedStudy, found: pd.DataFrame) -> pd.DataFrame:
    runs = study.runs
    short = [{axis_name(key): value for key, value in one.axes.items()} for one in runs]
    axes = {
        f"axis.{name}": pd.Series([own.get(name) for own in short], dtype=object)
        for name in dict.fromkeys(name for own in short for name in own)
    }
    stated = {
        name: pd.Series([getattr(one, name) for one in runs], dtype=object) for name in _STATED
    }
    table = found.assign(series=series_of(runs, found["ranks"]), **stated).reindex(
        columns=list(COLUMNS)
    )
    kinds = dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(_FLOATS, "float64")
    texts = [name for name in COLUMNS if name not in kinds and name != "whole_seconds"]
    first, second, *others = COLUMNS
    table = table.astype(kinds | dict.fromkeys(texts, "object"))
    columns = {name: table[name] for name in (first, second)} | axes
    return pd.DataFrame(columns | {name: table[name] for name in others})


def _startup_s(left_out: pd.DataFrame, found: pd.DataFrame) -> Column:
    """Return the time [s] that the steps left out took beyond their number of usual steps.

    Sum of (t - T) over the steps of the warm-up, T the median of the measured steps; the first
    step took `first_step_time_s` if that is longer, as it includes initialisation and compilation.
    NaN without a step left out and without a time of the first step; never below 0.
    """
    usual = left_out["run"].map(found["step_time_s"])
    beyond = left_out.assign(value=(left_out["value"] - usual) * left_out["steps"])
    spent = beyond.groupby("run")["value"].sum(min_count=1).reindex(found.index)
    one = per_run(beyond, "first").reindex(found.index)
    init = found["first_step_time_s"] - found["step_time_s"]
    both = (spent + (init - one.fillna(0)).clip(lower=0).fillna(0)).fillna(init)
    return both.clip(lower=0).where(usable(both))


# Times are printed with two digits, and a mean differs from a median.
_TOLERANCE = 1.2


def with_contradictions(found: pd.DataFrame) -> list[tuple[Flag, ...]]:
    """Return the flags of each run, with one more if its rate, step time and batch disagree.

    The columns are those of `run_frame`, and `printed_rate` [samples/s]. A rate above batch / step
    time is impossible. One below it is a contradiction only between the cells of a table: programs
    include evaluations in their rates. The step time is the median or the mean, whichever fits.
    """
    own = found["conditions"]
    stated = pd.Series(["parser" not in one for one in own], index=found.index, dtype=bool)
    texts = pd.Series([one.get("sequence_length") for one in own], index=found.index, dtype=object)
    batch, median = found["global_batch"], found["step_time_s"]
    mean = found["step_time_mean_s"].fillna(median)
    flags: list[tuple[Flag, ...]] = list(found["flags"])
    for item, rate, exact in (
        ("samples", found["printed_rate"], stated),
        ("tokens", found["tokens_per_second"], stated & False),
    ):
        with np.errstate(all="ignore"):
            work = batch * pd.to_numeric(texts, errors="coerce") if item == "tokens" else batch
            one, other = (known(rate * steps / work) for steps in (median, mean))
        wrong = np.minimum(one, other) > _TOLERANCE
        wrong |= exact & (np.maximum(one, other) < 1 / _TOLERANCE)
        for run in np.flatnonzero(wrong).tolist():
            detail = (
                f"{rate[run]:.4g} {item}/s in steps of {median[run]:.4g} s are "
                f"{rate[run] * median[run]:.4g} {item} a step, not {work[run]:g}"
            )
            flags[run] = (*flags[run], Flag(FlagCode.CONTRADICTION, detail))
    return flags


# Results that are compared; a sample is a sequence for one program, an image for another.
_RESULTS = tuple(metric.record for metric in RESULTS)
_COUNTED = {"samples": "samples"} | {
    metric.record: metric.basis.item for metric in RESULTS if metric.basis and metric.basis.is_rate
}
# Values stated by a user have no program.
_OF_USERS = frozenset({"table", "points"})
_LENGTH = "sequence_length"


def _printed_conditions(records: pd.DataFrame, runs: Sequence[ExpectedRun]) -> list[dict[str, str]]:
    """Return the recorded conditions of each run, updated with those in its log: NAME=VALUE.

    The records are `numbered` as `runs` are. If the ranks of a run print different values, all are
    listed: `2.4 / 2.5`. `parameters` are those that a log counts, the sum of the parts of its
    model, unless the runs state them.
    """
    found = [dict(run.conditions) for run in runs]
    own = records[records["run"] >= 0]
    parts = own[own["metric"] == "parameters"].drop_duplicates(["run", "variant"], keep="last")
    parts = parts[(parts["value"] > 0) & (parts["value"] < np.inf)]
    for one, size in parts.groupby("run")["value"].sum().items():
        found[int(str(one))].setdefault("parameters", f"{size:.0f}")
    printed: dict[tuple[int, str], set[str]] = {}
    pairs = own.loc[own["metric"] == "condition", ["run", "variant"]].drop_duplicates()
    for one, text in pairs.itertuples(index=False):
        name, equals, value = text.partition("=")
        if equals and name:
            printed.setdefault((one, name), set()).add(value)
    for (one, name), values in printed.items():
        found[one][name] = " / ".join(sorted(values))
    return found


def _with_programs(
    records: pd.DataFrame, conditions: Sequence[Mapping[str, str]], lengths: pd.Series[float]
) -> list[dict[str, str]]:
    """Return the conditions of the runs with `parser`, `counted` and `sequence_length`.

    Programs that print results of the same run (DeepSpeed below Megatron) count as one, also in
    runs in which only one of them prints results. Existing conditions are kept.
    """
    own = records.loc[records["run"] >= 0, ["run", "parser", "metric"]].drop_duplicates()
    parser, metric = own["parser"].astype(object), own["metric"].astype(object)
    parser = parser.where(metric.isin(_RESULTS) & ~parser.isin(_OF_USERS))
    columns = []
    for words in (parser, metric.map(_COUNTED)):
        found: list[set[str]] = [set() for _ in conditions]
        for run, word in zip(own["run"], words, strict=True):
            if isinstance(word, str):
                found[run].add(word)
        columns.append(_joined(found))
    whole = []
    for run, (given, parsers, counted) in enumerate(zip(conditions, *columns, strict=True)):
        length = f"{lengths[run]:.0f}" if run in lengths.index else ""
        new = {"parser": parsers, "counted": counted, _LENGTH: length}
        whole.append({name: text for name, text in new.items() if text} | dict(given))
    return whole


def _joined(found: Sequence[set[str]]) -> list[str]:
    """Return a name for each set, the same for sets that common words connect."""
    group: dict[str, set[str]] = {}
    for words in {frozenset(own): own for own in found}.values():
        joined = set(words).union(*(group.get(word, ()) for word in words))
        group.update(dict.fromkeys(joined, joined))
    return [" / ".join(sorted(group[next(iter(own))])) if own else "" for own in found]


def _sequence_lengths(records: pd.DataFrame) -> pd.Series[float]:
    """Return the longest sequence of each run: a warm-up may begin with shorter ones."""
    own = records[(records["metric"] == _LENGTH) & (records["run"] >= 0) & (records["value"] > 0)]
    return own.groupby("run")["value"].max()


# Of a parameter for each token: two operations forward, four backward.
_PER_PARAMETER = 6.0


def _add_computed_operations(found: pd.DataFrame) -> None:
    """Add TFLOP/s per GPU and MFU of the runs that state their operations, NaN for others.

    TFLOP/s = flops_per_sample x samples/s; without that number 6 N x tokens/s, N the parameters
    (Chowdhery et al., PaLM, 2022, appendix B; Narayanan et al., Megatron-LM, SC21), without the
    attention (12 L d s per token) and without recomputed activations. MFU = TFLOP/s per GPU,
    printed or else computed, over the peak. A run that printed the value has none computed.
    """
    own = found["conditions"]

    def number(read: Callable[[Mapping[str, str]], float | None]) -> Column:
        return pd.Series([read(one) for one in own], index=found.index, dtype="float64")

    per_sample = number(lambda one: number_of(one.get(FLOPS)))
    parameters = number(lambda one: number_of(one.get(PARAMETERS)))
    length = number(lambda one: number_of(one.get("sequence_length")))
    peak = number(lambda one: peak_tflops(one.get(PEAK), one.get("precision")))
    rate, printed = found["samples_per_second"], found["tflops_per_gpu"]
    tokens = found["tokens_per_second"].fillna(_product(rate, length))
    operations = _product(per_sample, rate).fillna(_product(_PER_PARAMETER * parameters, tokens))
    gpus = found["gpus"].where(found["gpus"] > 0)
    each = positive(_share(operations, gpus * 1e12))
    found["tflops_per_gpu_computed"] = each.where(printed.isna())
    found["mfu_computed"] = _share(printed.fillna(each), peak).where(found["mfu"].isna())


@bounded
def _product(one: Any, other: Any) -> Any:
    return one * other


@bounded
def _share(part: Any, whole: Any) -> Any:
    return part / whole


@bounded
def _ratio(value: Any, unit: Any) -> Any:
    return value / unit.where(unit > 0)


def _add_use_of_hardware(found: pd.DataFrame, measured: _Measured, lengths: Column) -> None:
    """Add TFLOP/s per GPU, power [W] and energy [J] of each run, NaN where unknown.

    Values per rank become one of the job only if every rank has one; one GPU per rank is assumed
    where a value is per GPU. Values that are not above 0 are unknown: a counter that is absent
    reads 0.
    """
    warmup, ranks, runs = measured.warmup, found["ranks"], found.index
    power, energy, tflops = (measured.named(name) for name in ("power", "energy", "tflops"))

    def of_all(rows: pd.DataFrame) -> Column:
        return of_all_ranks(rows[rows["step"].isna()], ranks).reindex(runs)

    def over_steps(stepwise: pd.DataFrame) -> tuple[Column, Column]:
        """Return the sum of the values of each run over its steps, and the number of steps."""
        whole = stepwise.assign(value=stepwise["value"] * stepwise["steps"])
        values, counts = (per_run(whole, "sum", name).reindex(runs) for name in ("value", "steps"))
        return values, counts

    # A total is divided by the number of GPUs.
    whole = tflops["scope"] == GLOBAL
    total, each = (typical(tflops[one], warmup).reindex(runs) for one in (whole, ~whole))
    gpus = found["gpus"].where(found["gpus"] > 0, ranks)
    found["tflops_per_gpu"] = positive(each.fillna(_ratio(total, gpus)))
    if power.empty and energy.empty:
        return
    # As stated of the run, else of its steps; power and energy of a step are of the measured ones.
    used = after_steps(step_totals(power, ranks), warmup)
    found["power_w"] = positive(of_all(power).fillna(_ratio(*over_steps(used))))
    single = typical(power[power["scope"] != GLOBAL], warmup, "mean").reindex(runs)
    found["power_per_rank_w"] = positive(single).where(found["power_w"].isna())
    stepwise = step_totals(energy, ranks)
    found["energy_j"] = positive(of_all(energy).fillna(over_steps(stepwise)[0]))
    per_step = positive(_ratio(*over_steps(after_steps(stepwise, warmup))))
    by_run = _ratio(found["energy_j"], found["samples_seen"])
    per_sample = positive(_ratio(per_step, found["global_batch"]).fillna(by_run))
    found["energy_per_sample_j"] = per_sample
    tokens = _ratio(found["tokens_per_second"], found["samples_per_second"])
    tokens = lengths.reindex(runs).round().fillna(tokens)
    by_step = _ratio(per_step, found["tokens_per_second"] * found["step_time_mean_s"])
    found["energy_per_token_j"] = positive(_ratio(per_sample, tokens).fillna(by_step))
    found["power_per_rate_j"] = _ratio(found["power_w"], found["samples_per_second"])


def sizes_of(runs: Sequence[ExpectedRun], world: Sequence[float] | Column) -> pd.DataFrame:
    """Return the COUNTS of each run, NaN if unknown, and the ranks `planned` or stated by a user.

    `world` is the number of ranks that a log states. A value stated by a user takes precedence. The
    ranks that lines name are those that printed; there may be more.
    """
    found = pd.DataFrame(
        [_sizes(run) for run in runs], columns=[*_SIZES, "planned"], dtype="float64"
    )
    found["world_size"] = world
    likely = (found["world_size"] >= 1) & (found["world_size"] <= _MOST_RANKS)
    found["ranks"] = found["planned"].fillna(np.floor(found["world_size"].where(likely)))
    return found


_SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "gpus", "cpus_per_task")


def _sizes(run: ExpectedRun) -> tuple[float | None, ...]:
    planned = run.topology
    if planned:
        own = (planned.nodes, planned.gpus_per_node, planned.tasks_per_node)
        whole = planned.nodes * planned.gpus_per_node
        return (*own, whole, planned.cpus_per_task, planned.world_size)
    nodes, each, tasks = (
        run.sizes[name] if name in run.sizes else size_of(run.axes, name) for name in _SIZES[:3]
    )
    gpus = run.sizes.get("gpus") if nodes is None or each is None else nodes * each
    stated = [run.sizes.get(name) for name in ("nodes", "tasks_per_node")]
    product = stated[0] * stated[1] if stated[0] and stated[1] else None
    return nodes, each, tasks, gpus, None, run.sizes.get("ranks", product)


def series_of(runs: Sequence[ExpectedRun], ranks: Column) -> list[str]:
    """Return the name of each run's series.

    Logs without a number of ranks are not assumed to have the same size.
    """
    alone = ranks.isna() & (len(runs) > 1)
    return [
        run.run_id
        if is_alone and not (run.topology or run.axes or run.sizes)
        else series_label(run.axes)
        for run, is_alone in zip(runs, alone.tolist(), strict=True)
    ]
