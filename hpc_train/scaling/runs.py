"""ExpectedStudy and records -> one row per requested run, in any state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import RATE_RECORDS, RESULTS, RUN_METRICS
from hpc_train.jobs.operations import FLOPS, PARAMETERS, PEAK, number_of, peak_tflops
from hpc_train.jobs.study import axis_name, series_label, size_of
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import CONTRADICTED, ExpectedRun, ExpectedStudy
from hpc_train.runs.run import JobState
from hpc_train.scaling.measurements import (
    GLOBAL,
    LOSS_LOST,
    QUANTILES,
    SCOPES,
    Flag,
    FlagCode,
    Measurements,
    after_steps,
    by_step,
    check_scopes,
    measurements,
    numbered,
    of_last,
    problem_of,
    run_flags,
    step_totals,
    whole_run,
    without_final_loss,
)
from hpc_train.scaling.record_arrays import (
    NAN,
    Floats,
    bounded,
    first_known,
    known,
    positive,
    record_arrays,
    usable,
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


# Columns of the frame before they have their types, and what they are computed from.
_Columns = dict[str, Any]


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
    measured = Measurements(rows, len(study.runs), study.warmup)
    world = measured.per_run(measured.named("world_size"), "last")
    found: _Columns = dict(sizes_of(study.runs, world))
    _add_steps(found, measured, study)
    _add_values(found, measured)
    # A warm-up may begin with shorter sequences.
    long = own[(own["metric"] == _LENGTH) & (own["run"] >= 0) & (own["value"] > 0)]
    lengths = measured.per_run(long, "max")
    _add_use_of_hardware(found, measured, lengths)
    found["conditions"] = _with_programs(own, _printed_conditions(own, study.runs), lengths)
    _add_computed_operations(found)
    _add_verdicts(found, study, rows)
    # A table states the steps behind its one time.
    stated = np.nan_to_num(found["optimiser_steps"])
    counted = np.where(found["seen"] > 0, found["steps"], stated)
    flags = run_flags(study.runs, rows, odd, counted, found["ranks"])
    lost = without_final_loss(own)
    found["flags"] = [
        (*own_flags, LOSS_LOST) if run in lost else own_flags for run, own_flags in enumerate(flags)
    ]
    found["flags"] = with_contradictions(found)
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


def stated_batch(study: ExpectedStudy, recorded: Floats, ranks: Floats) -> Floats:
    """Return the global batch that a person stated: of each rank, if the scaling is weak.

    Raises:
        ReportError: a run recorded another one.
    """
    if study.batch is None:
        return recorded * NAN
    stated = study.batch * (ranks if study.scaling == "weak" else np.ones(len(ranks)))
    for run in np.flatnonzero(np.abs(recorded - stated) > 0.5).tolist():
        raise ReportError(
            f"a global batch of {stated[run]:g} is stated, but {study.runs[run].run_id} recorded "
            f"{recorded[run]:g}",
            "leave --batch out",
        )
    return stated


def _add_steps(found: _Columns, measured: Measurements, study: ExpectedStudy) -> None:
    """Add batch, step times and the rate in samples."""
    named, ranks = measured.named, found["ranks"]
    recorded = measured.per_run(named("global_batch_size"), "last")
    batch = first_known(recorded, stated_batch(study, recorded, ranks))
    own = measured.steps(ranks, batch)
    names = ["seen", "warmup_steps", "steps", "step_time_mean_s", *QUANTILES]
    found |= {name: own[name] for name in names}
    found["global_batch"] = first_known(batch, own["samples_per_step"])
    stated = measured.per_run(whole_run(named("step_time")), "last")
    found["step_time_s"] = np.where(own["seen"] > 0, own["step_time_s"], stated)
    printed = measured.reported_rate(named("samples_per_second"), ranks)
    found["printed_rate"] = positive(printed)
    rate = first_known(own["samples_per_second"], printed)
    # A run within its warm-up has no result, whatever it printed.
    rate = np.where((own["seen"] > 0) & (own["steps"] == 0), NAN, rate)
    by_batch = _share(found["global_batch"], found["step_time_s"])
    found["samples_per_second"] = positive(first_known(rate, by_batch))


def _add_values(found: _Columns, measured: Measurements) -> None:
    """Add the metrics with a rule, then those that follow from several.

    `last`: the last value, whichever rank printed it. `highest`: the largest of all ranks and
    steps. `median`: of the measured steps, mean over ranks; else the value of the whole run.
    `rate`: of all ranks, by `reported_rate`.
    """
    named, per_run = measured.named, measured.per_run
    rules: dict[str, Callable[[pd.DataFrame], Floats]] = {
        "last": lambda rows: per_run(rows, "last"),
        "highest": lambda rows: per_run(rows, "max"),
        "median": measured.typical,
        "rate": lambda rows: positive(measured.reported_rate(rows, found["ranks"])),
    }
    for metric in RUN_METRICS:
        if metric.of_run in rules:
            found[metric.key] = rules[metric.of_run](named(metric.record, metric.variant))
    found["tokens_per_step"] = per_run(named("tokens_per_step"), "last")
    tokens = positive(_share(found["tokens_per_step"], found["step_time_s"]))
    found["tokens_per_second"] = first_known(tokens, found["tokens_per_second"])
    _add_epochs(found, measured)
    own = named("accuracy")
    of_job, of_ranks = own[own["scope"] == GLOBAL], of_last(own[own["scope"] != GLOBAL])
    found["accuracy"] = first_known(per_run(of_job, "last"), per_run(of_ranks, "mean"))
    found["optimiser_steps"] = _optimiser_steps(measured)
    seen = per_run(whole_run(named("samples")), "last")
    found["samples_seen"] = first_known(seen, found["optimiser_steps"] * found["global_batch"])
    for name, words in _TIMERS.items():
        share = _share(_largest_timer(measured, words), found["step_time_mean_s"])
        found[name] = np.where(share <= 1, share, NAN)


def _add_epochs(found: _Columns, measured: Measurements) -> None:
    """Add number and time of the epochs, and whether a program truncated its times to seconds."""
    times, per_run = measured.named("epoch_time"), measured.per_run
    each = times.groupby(["run", "step"], dropna=False)["value"].max().reset_index()
    found["epochs"] = np.nan_to_num(per_run(each, "size"))
    # The first of several includes the start.
    first = each.groupby("run").cumcount() == 0
    counted = each[~first | (found["epochs"][each["run"]] == 1)]
    found["epoch_time_s"] = per_run(counted, "mean")
    found["whole_seconds"] = np.zeros(measured.size, dtype=bool)
    for rows in (times, measured.named("time_to_train")):
        whole = rows.assign(whole=rows["value"] % 1 == 0)
        cut = (per_run(whole, "any", "book") > 0) & (per_run(whole, "all", "whole") > 0)
        found["whole_seconds"] |= cut


def _optimiser_steps(measured: Measurements) -> Floats:
    """Return the printed number of steps, else that of the last one, plus one if counted from 0."""
    found = np.full(measured.size, NAN)
    for metric in _STEPPED:
        own = measured.named(metric)
        own = own[~own["numbered"]]
        first, last = (measured.per_run(own, how, "step") for how in ("min", "max"))
        found = np.fmax(found, last + (first == 0))
    return first_known(measured.per_run(measured.named("steps"), "max"), found)


def _largest_timer(measured: Measurements, words: re.Pattern[str]) -> Floats:
    """Return the time of a step [s] that these timers state; NaN without.

    Mean over ranks and measured steps of the largest timer of that kind: timers are nested, so
    their sum would count time twice.
    """
    most = np.full(measured.size, NAN)
    for name, phases in measured.variants("phase_time").items():
        if words.search(name.replace("_", "-")) and not name.endswith(" min"):
            kept = after_steps(by_step(phases, "mean"), measured.warmup)
            most = np.fmax(most, measured.per_run(kept, "mean"))
    return most


def _add_verdicts(found: _Columns, study: ExpectedStudy, rows: pd.DataFrame) -> None:
    """Add state and problem of each run."""
    states, why = [run.state for run in study.runs], [run.problem for run in study.runs]
    ok = np.array([state == OK for state in states], dtype=bool)
    planned, world, seen = found["planned"], found["world_size"], found["seen"]
    apart = ok & (np.abs(planned - world) > 0)
    unmeasured = (seen > 0) & ~(found["step_time_s"] > 0)
    nothing = np.all([np.isnan(found[metric.key]) for metric in RESULTS], axis=0)
    more = np.array([run.ranks for run in study.runs], dtype=np.float64) > world
    own = rows[_of_table(rows)].sort_index()
    of_run = own.groupby("run").indices
    for run in np.flatnonzero(ok & (apart | unmeasured | nothing | more)).tolist():
        one = study.runs[run]
        if apart[run]:
            # Ranks that train independently look like perfect scaling.
            word = "planned" if one.topology else "stated"
            problem = f"{CONTRADICTED}{world[run]:g}, {word} {planned[run]:.0f}"
        elif unmeasured[run] or nothing[run]:
            problem = problem_of(
                own.iloc[of_run.get(run, [])], seen[run], found["steps"][run], study
            )
            problem = problem if unmeasured[run] else why[run] or problem
        else:
            problem = f"{CONTRADICTED}{world[run]:g}, but rank {one.ranks - 1:.0f} prints"
        states[run], why[run] = UNPARSED, problem
    found["state"], found["problem"] = states, why


def _typed(study: ExpectedStudy, found: _Columns) -> pd.DataFrame:
    runs = study.runs
    short = [{axis_name(key): value for key, value in one.axes.items()} for one in runs]
    axes = {
        f"axis.{name}": pd.Series([own.get(name) for own in short], dtype=object)
        for name in dict.fromkeys(name for own in short for name in own)
    }
    found |= {name: [getattr(one, name) for one in runs] for name in _STATED}
    found["series"] = series_of(runs, found["ranks"])
    kinds = dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(_FLOATS, "float64")
    kinds["whole_seconds"] = "bool"
    unknown = [None] * len(runs)
    columns = {
        name: pd.Series(found.get(name, unknown), dtype=kinds.get(name, "object"))
        for name in COLUMNS
    }
    first, second, *others = COLUMNS
    return pd.DataFrame(
        {name: columns[name] for name in (first, second)}
        | axes
        | {name: columns[name] for name in others}
    )


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
    lengths = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    batch, median = found["global_batch"], found["step_time_s"]
    mean = first_known(found["step_time_mean_s"], median)
    flags: list[tuple[Flag, ...]] = list(found["flags"])
    for item, rate, exact in (
        ("samples", found["printed_rate"], stated),
        ("tokens", found["tokens_per_second"], stated & False),
    ):
        with np.errstate(all="ignore"):
            work = batch * lengths if item == "tokens" else batch
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
    records: pd.DataFrame, conditions: Sequence[Mapping[str, str]], lengths: Floats
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
        length = "" if np.isnan(lengths[run]) else f"{lengths[run]:.0f}"
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


# Of a parameter for each token: two operations forward, four backward.
_PER_PARAMETER = 6.0


def _add_computed_operations(found: _Columns) -> None:
    """Add TFLOP/s per GPU and MFU of the runs that state their operations, NaN for others.

    TFLOP/s = flops_per_sample x samples/s; without that number 6 N x tokens/s, N the parameters
    (Chowdhery et al., PaLM, 2022, appendix B; Narayanan et al., Megatron-LM, SC21), without the
    attention (12 L d s per token) and without recomputed activations. MFU = TFLOP/s per GPU,
    printed or else computed, over the peak. A run that printed the value has none computed.
    """
    own = found["conditions"]

    def number(read: Callable[[Mapping[str, str]], float | None]) -> Floats:
        return np.array([read(one) for one in own], dtype=np.float64)

    per_sample = number(lambda one: number_of(one.get(FLOPS)))
    parameters = number(lambda one: number_of(one.get(PARAMETERS)))
    length = number(lambda one: number_of(one.get("sequence_length")))
    peak = number(lambda one: peak_tflops(one.get(PEAK), one.get("precision")))
    rate, printed = found["samples_per_second"], found["tflops_per_gpu"]
    tokens = first_known(found["tokens_per_second"], _product(rate, length))
    by_parameters = _product(_PER_PARAMETER * parameters, tokens)
    operations = first_known(_product(per_sample, rate), by_parameters)
    each = positive(_share(operations, positive(found["gpus"]) * 1e12))
    found["tflops_per_gpu_computed"] = np.where(np.isnan(printed), each, NAN)
    mfu = _share(first_known(printed, each), peak)
    found["mfu_computed"] = np.where(np.isnan(found["mfu"]), mfu, NAN)


@bounded
def _product(one: Any, other: Any) -> Any:
    return one * other


@bounded
def _share(part: Any, whole: Any) -> Any:
    return part / whole


@bounded
def _ratio(value: Any, unit: Any) -> Any:
    return value / np.where(unit > 0, unit, NAN)


def _add_use_of_hardware(found: _Columns, measured: Measurements, lengths: Floats) -> None:
    """Add TFLOP/s per GPU, power [W] and energy [J] of each run, NaN where unknown.

    Values per rank become one of the job only if every rank has one; one GPU per rank is assumed
    where a value is per GPU. Values that are not above 0 are unknown: a counter that is absent
    reads 0.
    """
    warmup, ranks = measured.warmup, found["ranks"]
    power, energy, tflops = (measured.named(name) for name in ("power", "energy", "tflops"))

    def of_all(rows: pd.DataFrame) -> Floats:
        return measured.of_all_ranks(rows[rows["step"].isna()], ranks)

    def over_steps(stepwise: pd.DataFrame) -> tuple[Floats, Floats]:
        """Return the sum of the values of each run over its steps, and the number of steps."""
        whole = stepwise.assign(value=stepwise["value"] * stepwise["steps"])
        return measured.per_run(whole, "sum"), measured.per_run(whole, "sum", "steps")

    # A total is divided by the number of GPUs.
    whole = tflops["scope"] == GLOBAL
    total, each = (measured.typical(tflops[one]) for one in (whole, ~whole))
    gpus = np.where(found["gpus"] > 0, found["gpus"], ranks)
    found["tflops_per_gpu"] = positive(first_known(each, _ratio(total, gpus)))
    if power.empty and energy.empty:
        return
    # As stated of the run, else of its steps; power and energy of a step are of the measured ones.
    used = after_steps(step_totals(power, ranks), warmup)
    found["power_w"] = positive(first_known(of_all(power), _ratio(*over_steps(used))))
    single = positive(measured.typical(power[power["scope"] != GLOBAL], "mean"))
    found["power_per_rank_w"] = np.where(np.isnan(found["power_w"]), single, NAN)
    stepwise = step_totals(energy, ranks)
    found["energy_j"] = positive(first_known(of_all(energy), over_steps(stepwise)[0]))
    per_step = positive(_ratio(*over_steps(after_steps(stepwise, warmup))))
    by_run = _ratio(found["energy_j"], found["samples_seen"])
    per_sample = positive(first_known(_ratio(per_step, found["global_batch"]), by_run))
    found["energy_per_sample_j"] = per_sample
    printed = _ratio(found["tokens_per_second"], found["samples_per_second"])
    tokens = first_known(np.round(lengths), printed)
    by_step = _ratio(per_step, found["tokens_per_second"] * found["step_time_mean_s"])
    found["energy_per_token_j"] = positive(first_known(_ratio(per_sample, tokens), by_step))


def sizes_of(runs: Sequence[ExpectedRun], world: Floats) -> dict[str, Floats]:
    """Return the COUNTS of each run, NaN if unknown, and the ranks `planned` or stated by a user.

    `world` is the number of ranks that a log states. A value stated by a user takes precedence. The
    ranks that lines name are those that printed; there may be more.
    """
    names = (*_SIZES, "planned")
    sizes = np.array([_sizes(run) for run in runs], dtype=np.float64).reshape(-1, len(names))
    found = dict(zip(names, sizes.T, strict=True))
    likely = np.where((world >= 1) & (world <= _MOST_RANKS), np.floor(world), NAN)
    return found | {"world_size": world, "ranks": first_known(found["planned"], likely)}


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


def stored_runs(rows: Sequence[Mapping[str, Any]], name: str) -> pd.DataFrame:
    """Return the run table from `runs` of a report in JSON.

    Raises:
        ReportError: a run lacks a key that this version needs.
    """
    needed = ("run_id", "series", "state")
    for row in rows:
        absent = [key for key in needed if key not in row]
        if absent:
            raise ReportError(f"{name}: runs: {row.get('run_id', '?')} has no {absent[0]!r}")
    keys = dict.fromkeys([*COLUMNS, *(key for row in rows for key in row)])
    frame = pd.DataFrame(list(rows), columns=pd.Index(list(keys)))
    counts = dict.fromkeys(
        ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "repetition"), "Int64"
    )
    floats = [metric.key for metric in RUN_METRICS if not metric.counts]
    numbers = {key: pd.to_numeric(frame[key], errors="coerce").astype("float64") for key in floats}
    return frame.assign(**numbers).astype(counts)


def row_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per mapping; a column holds every key, in the order of its first use.

    Whole numbers remain whole numbers if some rows have none.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return pd.DataFrame(columns, columns=pd.Index(names))


def _column(values: Sequence[Any]) -> pd.Series:
    kinds = {type(value) for value in values if value is not None}
    # A column without any value is one of numbers, so that it can be plotted and compared.
    dtype = {frozenset({int}): "Int64", frozenset(): "float64"}.get(frozenset(kinds))
    return pd.Series(list(values), dtype=dtype)
