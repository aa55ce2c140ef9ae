"""The records of a study -> its measurements, each once; their reductions over ranks and steps.

A frame of measurements has the columns `metric`, `variant`, `run` (a number of the study), `step`,
`scope`, `who` (a number for each rank, or for each file if the rank is unknown), `steps`, `book`
(printed by the programs of the book), `numbered` (the step is a position in the log) and `value`,
sorted by metric, variant, run and step, those without a step last; its index is that of the
records. Reductions are arrays with an element for each run, NaN for runs without such a value.
Flags say what is wrong with the measurement of a run.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Literal

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import METRICS, RATE_RECORDS
from hpc_train.base.values import Value
from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy, state_sizes
from hpc_train.scaling.record_arrays import (
    NAN,
    Floats,
    first_known,
    positive,
    record_arrays,
    usable,
)

GLOBAL, PER_RANK, PER_GPU = "global", "per_rank", "per_gpu"
# Metrics whose aggregation depends on their scope, and their valid scopes.
SCOPES: dict[str, tuple[str, ...]] = {
    metric.record: metric.scopes for metric in METRICS if metric.scopes
} | {"world_size": (GLOBAL,)}
# Its programs truncate times to whole seconds, and print the rank in each epoch's line, except for
# a single process.
_BOOK = "book"
_GUESSING = ("generic", "espnet")
_REPEATED = ("step_time", "epoch_time", "samples_per_second", "tokens_per_second")
_KIND = ["metric", "variant", "run"]
LEAST_STEPS = 20
# Sixty seconds are a little less when they are the sum of six hundred tenths.
ROUNDING = 1e-9
QUANTILES = {"step_p05_s": 0.05, "step_p25_s": 0.25, "step_p75_s": 0.75, "step_p95_s": 0.95}


def numbered(records: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the records with the place of their run among these names, -1 for other runs."""
    known = {name: place for place, name in enumerate(names)}
    places = [known.get(name, -1) for name in records["run"].cat.categories]
    return records.assign(run=np.array([*places, -1])[records["run"].cat.codes])


def measurements(records: pd.DataFrame, *, in_line_order: bool = False) -> pd.DataFrame:
    """Return each measurement of `numbered` records once, usable or not.

    A value per GPU is dropped if there is one of the whole job, because programs that print both
    mean the same quantity. The same rank's value of the same step counts once, the last one: a line
    may be in two log files, and a requeued run repeats steps. If two programs print one metric of a
    run (DeepSpeed below Megatron), the one that prints it more often is used: their values are
    never added.
    """
    rank, scope = records["rank"], records["scope"]
    who = np.where(rank.isna(), -1 - records["source"].cat.codes.astype("int64"), 1 + rank)
    rows = records.assign(who=np.where(scope == GLOBAL, 0, who), book=records["parser"] == _BOOK)
    rows = _in_line_order(rows) if in_line_order else rows
    if (scope == PER_GPU).any():
        whole = (scope == GLOBAL).groupby([rows[key] for key in _KIND], observed=True)
        rows = rows[(scope != PER_GPU) | ~whole.transform("any")]
    again = rows.duplicated([*_KIND, "scope", "step", "who"], keep="last")
    rows = rows[~again | rows["step"].isna()].sort_values([*_KIND, "step"], kind="stable")
    if rows["parser"].nunique() < 2:
        return rows
    each = rows.assign(place=rows.index).groupby([*_KIND, "parser"], observed=True)["place"]
    # If both print it equally often, the first one.
    best = each.agg(["size", "min"]).sort_values(["size", "min"], ascending=[False, True])
    best = best.reset_index()[[*_KIND, "parser"]].drop_duplicates(_KIND).assign(best=True)
    chosen = rows[[*_KIND, "parser"]].merge(best, how="left")["best"].notna()
    return rows[chosen.to_numpy(dtype=bool)]


def _in_line_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a number for each of several values of one metric of a log.

    Such rows are `numbered`: 1 is the first value that was printed, which may be that of step 10.
    A single value stays that of the whole run, and a log that names steps is not changed.
    """
    rows = rows.assign(numbered=False)
    own = rows[rows["parser"].isin(_GUESSING) & rows["metric"].isin(_REPEATED)]
    own = own[(own["variant"] == "") & (own["scope"] != "unknown")]
    if own.empty:
        return rows
    groups = own.groupby(
        ["metric", "run", "scope", "source", "rank"], observed=True, dropna=False, sort=False
    )
    several = (groups["value"].transform("size") > 1) & (groups["step"].transform("count") == 0)
    place = 1 + groups.cumcount()[several]
    rows.loc[place.index, "step"] = place.astype("float64")
    rows.loc[place.index, "numbered"] = True
    return rows


def check_scopes(rows: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse a value whose scope it cannot be added up in; unknown ones are left out.

    Raises:
        ReportError: the first such value.
    """
    wrong = [
        own.index[~own["scope"].isin(SCOPES[str(metric)])]
        for metric, own in rows[rows["variant"] == ""].groupby("metric", observed=True)
        if metric in SCOPES
    ]
    places = [place for some in wrong for place in some]
    if places:
        first = rows.loc[min(places)]
        metric = first["metric"]
        raise ReportError(
            f"{names[first['run']]}: {first['source']}:{first['line']}: {metric} has scope "
            f"{first['scope']}; it must be {' or '.join(sorted(SCOPES[metric]))}",
            "let the parser or the event state the scope in which the value was printed",
        )


def whole_run(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the whole job that name no step."""
    return rows[(rows["scope"] == GLOBAL) & rows["step"].isna()]


def of_last(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the last value of each rank of each run."""
    return rows.drop_duplicates(["run", "who"], keep="last")


def by_step(rows: pd.DataFrame, how: str) -> pd.DataFrame:
    """Return one row for each step that is named, `how` of its ranks; it counts for most steps."""
    steps = rows.groupby(["run", "step"])
    columns = {"value": steps["value"].agg(how), "steps": steps["steps"].max()}
    return pd.DataFrame(columns).reset_index() if len(rows) else rows


def after_warmup(
    steps: pd.DataFrame, warmup: Warmup, series: Sequence[str] = ("run",)
) -> pd.DataFrame:
    """Return the steps that count: those after `warmup.steps` steps and `warmup.seconds` seconds.

    Steps are counted by their numbers, so that a log with every tenth step does not lose ten times
    as many; those between two lines of a log took as long as the later one says.
    """
    if steps.empty:
        return steps
    own = steps.groupby(list(series))
    kept = steps["step"] - own["step"].transform("min") >= warmup.steps
    if warmup.seconds or (steps["value"] < 0).any():
        since = own["step"].diff().fillna(0)
        spent = steps["value"] * np.maximum(steps["steps"], since)
        passed = spent.groupby([steps[name] for name in series]).cumsum()
        kept &= passed - spent >= warmup.seconds * (1 - ROUNDING)
    return steps[kept]


def after_steps(steps: pd.DataFrame, warmup: Warmup) -> pd.DataFrame:
    """Return the steps after `warmup.steps`: values that are no times tell no seconds."""
    kept = after_warmup(steps.assign(value=0.0), Warmup(steps=warmup.steps))
    return steps.loc[kept.index]


def step_totals(rows: pd.DataFrame, ranks: Floats) -> pd.DataFrame:
    """Return a metric's total over all ranks per step; a global value is the total already.

    Steps that not every rank has logged are left out: their sum would be too small. A value per
    GPU is multiplied by the number of ranks, one for each GPU; without that number there is none.
    """
    rows = rows.dropna(subset="step")
    if rows.empty:
        return rows
    has = {one: rows["run"].isin(rows["run"][rows["scope"] == one]) for one in (GLOBAL, PER_GPU)}
    scope = np.where(has[GLOBAL], GLOBAL, np.where(has[PER_GPU], PER_GPU, PER_RANK))
    rows = rows.assign(scope=scope)[(scope == PER_RANK) | (rows["scope"] == scope)]
    steps = rows.groupby(["run", "step"])
    columns = {"value": steps["value"].sum(), "steps": steps["steps"].max()}
    found = pd.DataFrame(
        columns | {"scope": steps["scope"].first(), "ranks": steps.size()}
    ).reset_index()
    of_run = ranks[found["run"]]
    most = first_known(of_run, found.groupby("run")["ranks"].transform("max"))
    each = found["scope"] == PER_GPU
    found["value"] = np.where(each, found["value"] / found["ranks"] * of_run, found["value"])
    complete = np.where(each, ~np.isnan(of_run), found["ranks"] == most)
    return found[(found["scope"] == GLOBAL) | complete]


class Measurements:
    """The usable measurements of the `size` runs of a study, reduced to a value for each run."""

    def __init__(self, rows: pd.DataFrame, size: int, warmup: Warmup) -> None:
        """Divide the rows by metric and variant."""
        self._of = dict(iter(rows.groupby(["metric", "variant"], observed=True)))
        self._none, self.size, self.warmup = rows.iloc[:0], size, warmup

    def named(self, metric: str, variant: str = "") -> pd.DataFrame:
        """Return those without a variant, and those whose variant begins with this one."""
        if not variant:
            return self._of.get((metric, ""), self._none)
        several = [
            own
            for name, own in self.variants(metric).items()
            if not name or name.startswith(variant)
        ]
        return pd.concat(several).sort_values("run", kind="stable") if several else self._none

    def variants(self, metric: str) -> dict[str, pd.DataFrame]:
        """Return all of a metric, by variant."""
        return {str(one): own for (name, one), own in self._of.items() if name == metric}

    def per_run(self, rows: pd.DataFrame, how: str, column: str = "value") -> Floats:
        """Return the mean, median, sum, max, first, last … of the rows of each run."""
        found = np.full(self.size, NAN)
        if len(rows):
            each = rows.groupby("run")[column].agg(how)
            found[each.index] = each
        return found

    def reported_rate(self, rows: pd.DataFrame, ranks: Floats) -> Floats:
        """Return the throughput [1/s] of all ranks that runs themselves printed.

        Rates per step: that of the median step after the warm-up, as of step times. Else the
        global summary, once; else the mean per GPU times the ranks; else the sum over the ranks,
        if every rank printed one.
        """
        if rows.empty:
            return self.per_run(rows, "last")
        stepwise = step_totals(rows, ranks)
        kept = after_steps(stepwise, self.warmup)
        with np.errstate(all="ignore"):
            typical = 1 / self.per_run(kept.assign(value=1 / kept["value"]), "median")
        typical = np.where(self.per_run(kept, "min") > 0, typical, NAN)
        in_steps = self.per_run(stepwise, "size") > 0
        return np.where(in_steps, typical, self.of_all_ranks(rows, ranks, before=PER_GPU))

    def of_all_ranks(self, rows: pd.DataFrame, ranks: Floats, before: str = PER_RANK) -> Floats:
        """Return the last value of the job, else that of all ranks: by `before`, else the other.

        The sum over the ranks counts if there is one of each; a mean per GPU is multiplied by them.
        """
        own, gpus = (of_last(rows[rows["scope"] == scope]) for scope in (PER_RANK, PER_GPU))
        summed = np.where(self.per_run(own, "size") == ranks, self.per_run(own, "sum"), NAN)
        each = self.per_run(gpus, "mean")
        if before == PER_GPU:
            summed = np.where(np.isnan(each), summed, NAN)
        of_job = self.per_run(rows[rows["scope"] == GLOBAL], "last")
        return first_known(of_job, summed, each * ranks)

    def typical(self, rows: pd.DataFrame, how: str = "median") -> Floats:
        """Return the value of the run, mean over ranks; else the median of the measured steps."""
        if rows.empty:
            return self.per_run(rows, how)
        stated = self.per_run(of_last(rows[rows["step"].isna()]), "mean")
        steps = after_steps(by_step(rows, "mean"), self.warmup)
        return first_known(stated, self.per_run(steps, how))

    def steps(self, ranks: Floats, batch: Floats) -> dict[str, Floats]:
        """Reduce the steps of each run to their median step time [s] and its throughput [1/s].

        A step takes as long as its slowest rank. Throughput is the median of the samples of a step
        over the median step time: both speak of the same steps, and neither of evaluations between
        them. Without samples of all ranks `batch` is taken for each step. A value that is the mean
        of several steps counts as so many in totals, and once in medians and quantiles.

        The keys are `seen`, `warmup_steps`, `steps` (0 without), `step_time_s`, `step_time_mean_s`
        (total time over number), `samples_per_second`, `samples_per_step` and QUANTILES.
        """
        per_run = self.per_run
        times = by_step(self.named("step_time"), "max")
        samples = step_totals(self.named("samples"), ranks)
        kept = after_warmup(times, self.warmup)
        left_out = times.drop(kept.index)
        kept = _with_work(kept, samples, batch).assign(seconds=kept["value"] * kept["steps"])
        found = {
            name: np.nan_to_num(per_run(some, "sum", "steps"))
            for name, some in (("seen", times), ("warmup_steps", left_out), ("steps", kept))
        }
        mean = per_run(kept, "sum", "seconds") / np.maximum(found["steps"], 1)
        timed = {"step_time_s": per_run(kept, "median")}
        quantiles = kept.groupby("run")["value"].quantile([*QUANTILES.values()]).unstack()
        for name, share in QUANTILES.items():
            timed[name] = np.full(self.size, NAN)
            timed[name][quantiles.index] = quantiles[share] if len(kept) else NAN
        timed["step_time_mean_s"] = mean
        found |= {name: np.where(mean > 0, values, NAN) for name, values in timed.items()}
        work = per_run(kept, "median", "work")
        found["samples_per_second"] = work / positive(found["step_time_s"])
        found["samples_per_step"] = per_run(samples, "median")
        return found


def _with_work(steps: pd.DataFrame, samples: pd.DataFrame, batch: Floats) -> pd.DataFrame:
    """Add the samples of each step: as logged if they are for all steps of a run, else `batch`."""
    if samples.empty:
        return steps.assign(work=batch[steps["run"]])
    of_step = samples.set_index(["run", "step"])["value"]
    work = of_step.reindex(pd.MultiIndex.from_frame(steps[["run", "step"]])).to_numpy()
    lacking = pd.Series(np.isnan(work), index=steps.index).groupby(steps["run"]).transform("any")
    return steps.assign(work=np.where(lacking, batch[steps["run"]], work))


# Step times of nodes: by the same steps as those of runs.

NODE_COLUMNS = ["run_id", "node", "step_time_s"]
# Timers of work that a rank does without communication.
_ALONE = re.compile(r"(?:(?:forward|backward)-)?compute")
_NODE = ["alone", "run", "node"]
_SERIES = ["alone", "run"]


def node_frame(study: ExpectedStudy, records: pd.DataFrame | Iterable[Record]) -> pd.DataFrame:
    """Return the median over the measured steps of each node's time [s], if logs name nodes.

    The time of a step on a node is the mean over its ranks. Where ranks wait for one another in
    each step, all of them take as long as the slowest, and only what they do alone tells them
    apart: the time is the compute time, the metric of this name or the sum of the timers
    forward-compute and backward-compute, where these are logged on all nodes. A line that names no
    node is of the node that other lines of its rank name.
    """
    names = [run.run_id for run in study.runs]
    own = numbered(record_arrays(records), names)
    rows = _timed(own)
    named = own.dropna(subset=["node", "rank"]).drop_duplicates(["run", "rank"])
    if own["node"].isna().all():
        return pd.DataFrame(columns=pd.Index(NODE_COLUMNS)).astype({"step_time_s": "float64"})
    of_rank = rows[["run", "rank"]].merge(named[["run", "rank", "node"]], how="left")["node"]
    node = rows["node"].astype(object).fillna(of_rank.astype(object).set_axis(rows.index))
    rows = rows.assign(node=node).dropna(subset="node")
    by_rank = rows.groupby([*_NODE, "step", "who"])["value"].sum().reset_index()
    slowest = by_rank.groupby([*_SERIES, "step"])["value"].max().reset_index()
    kept = after_warmup(slowest.assign(steps=1), study.warmup, _SERIES)
    counted = by_rank.merge(kept[[*_SERIES, "step"]])
    by_node = counted.groupby([*_NODE, "step"])["value"].mean().groupby(_NODE).median()
    found = by_node.reset_index(name="step_time_s")
    # The compute times of runs that print them for every node, else the step times.
    nodes = found.groupby(["run", "alone"])["node"].nunique().unstack(fill_value=0)
    nodes = nodes.reindex(columns=[False, True], fill_value=0)
    found = found[found["alone"] == found["run"].map(nodes[True] >= nodes[False]).astype(bool)]
    places = {name: place for place, name in enumerate(own["node"].cat.categories)}
    found = found.assign(
        run_id=[names[run] for run in found["run"]],
        place=found["node"].map(places),
    )
    found = found.sort_values(["run", "place"], kind="stable", ignore_index=True)
    return found[NODE_COLUMNS].astype({"step_time_s": "float64"})


def _timed(records: pd.DataFrame) -> pd.DataFrame:
    """Return the step times of single ranks, and the times that they were `alone`."""
    timers = records["variant"].astype(object).unique()
    alone = {name for name in timers if _ALONE.fullmatch(str(name).replace("_", "-"))}
    plain = records["variant"] == ""
    parts = (records["metric"] == "phase_time") & records["variant"].isin(alone)
    computed = parts | ((records["metric"] == "compute_time") & plain)
    chosen = computed | ((records["metric"] == "step_time") & plain)
    rows = measurements(records[chosen & (records["scope"] != "unknown")])
    rows = rows[rows["step"].notna() & (rows["scope"] == PER_RANK) & (rows["run"] >= 0)]
    return rows[usable(rows["value"])].assign(alone=rows["metric"] != "step_time")


class FlagCode(str, Enum):
    """The kinds of flags in the column `flags`; docs/reading-a-report.md explains them."""

    ONE_RUN = "n=1"
    ONE_BASELINE_RUN = "baseline n=1"
    NO_SPREAD = "no spread"
    ONE_SESSION = "one session"
    SHORT = "short"
    SLOW_STEPS = "slow steps"
    GATE = "gate"
    RANKS = "ranks"
    SUPERLINEAR = "superlinear"
    VARIES = "varies"
    ACCURACY = "accuracy"
    LOSS = "loss"
    WHOLE_SECONDS = "whole seconds"
    UNMEASURED = "no result"
    NOT_FINITE = "not finite"
    REQUEUED = "requeued"
    EFFICIENCY = "efficiency"
    CONTRADICTION = "contradiction"
    MEMORY = "memory"
    MFU = "MFU"
    UNIT = "unit"
    THROTTLED = "throttled"
    TRANSPORT = "transport"


# The number itself is wrong, or was not measured under the conditions of its series.
IMPLAUSIBLE = frozenset(
    {
        FlagCode.EFFICIENCY, FlagCode.CONTRADICTION, FlagCode.MEMORY, FlagCode.MFU,
        FlagCode.UNIT, FlagCode.THROTTLED, FlagCode.TRANSPORT,
    }
)  # fmt: skip


class Flag(Value, frozen=True, order=True):
    """The kind of the doubt, and its detail; in files it is the text `code: detail`."""

    code: FlagCode
    detail: str

    def __str__(self) -> str:
        """Return the text that files contain."""
        return f"{self.code.value}: {self.detail}"


def flag_of(text: str) -> Flag | None:
    """Return the flag that was written as this text; None if its kind is not known."""
    name, _, detail = text.partition(": ")
    return Flag(FlagCode(name), detail) if name in set(FlagCode) else None


LOSS_LOST = Flag(FlagCode.NOT_FINITE, "loss at the end")


NO_RATE = ", but no time or rate of training; see hpctrain help events"
_SINGLE_VALUED = ("global_batch_size", "world_size", "samples_per_second")


def run_flags(
    expected: Sequence[ExpectedRun],
    rows: pd.DataFrame,
    odd: pd.DataFrame,
    steps: Floats,
    ranks: Floats,
) -> list[tuple[Flag, ...]]:
    """Return the flags of each run; `odd` are the measurements that were left out."""
    flags: dict[int, list[Flag]] = defaultdict(list)
    for run in np.flatnonzero((steps > 0) & (steps < LEAST_STEPS)).tolist():
        flags[run].append(Flag(FlagCode.SHORT, f"{steps[run]:.0f} steps"))
    plain = rows[rows["variant"] == ""]
    own = plain[(plain["metric"] == "step_time") & (plain["scope"] == PER_RANK)]
    # Where one rank prints for all, no other is expected to.
    for run, timed in own.drop_duplicates(["run", "who"]).groupby("run").size().items():
        if 1 < timed < ranks[run]:
            text = f"steps of {timed} of {ranks[run]:.0f} ranks"
            flags[int(str(run))].append(Flag(FlagCode.RANKS, text))
    for metric in _SINGLE_VALUED:
        own = whole_run(plain[plain["metric"] == metric])
        own = own.drop_duplicates(["run", "value"])
        for run, several in own[own["run"].duplicated(keep=False)].groupby("run")["value"]:
            text = ", ".join(f"{value:g}" for value in several)
            flags[run].append(Flag(FlagCode.VARIES, f"{metric} {text}; last taken"))
    for run, lost in odd.sort_index().groupby("run"):
        counts = lost["metric"].astype(object).value_counts()
        names = ", ".join(f"{count} of {name}" for name, count in counts.items())
        flags[run].append(Flag(FlagCode.NOT_FINITE, f"{names} left out"))
    for run, one in enumerate(expected):
        if one.restarts:
            often = "once" if one.restarts == 1 else f"{one.restarts} times"
            flags[run].append(Flag(FlagCode.REQUEUED, f"restarted {often}"))
    return [tuple(flags.get(run, ())) for run in range(len(expected))]


def without_final_loss(records: pd.DataFrame) -> set[int]:
    """Return the runs whose last loss in the log is NaN or infinite.

    A loss that is finite again does not count: mixed precision skips steps that overflow.
    """
    lost = (records["metric"] == "not_finite") & (records["variant"] == "loss")
    own = records[lost | ((records["metric"] == "loss") & (records["variant"] == ""))]
    last = own[own["run"] >= 0].drop_duplicates(["run", "source"], keep="last")
    return set(last["run"][last["metric"] == "not_finite"])


def problem_of(rows: pd.DataFrame, seen: float, steps: float, study: ExpectedStudy) -> str:
    """Return why a run has no result, and the next step.

    `rows` are its measurements in the order of the log, of `seen` steps of which `steps` count.
    """
    if seen and not steps:
        # Only a study has a file in which the warm-up can be changed.
        change = "lower warmup.steps or " if any(run.topology for run in study.runs) else ""
        warmup = warmup_words(study.warmup)
        return f"no measured step: {seen:.0f} in the log, warm-up {warmup}; {change}run longer"
    if steps:
        return "step times are not positive; print seconds a step, measured by a monotonic clock"
    if rows.empty:
        return "no line with a time or rate that is known; hpctrain help my-report-is-empty"
    rates = rows[rows["metric"].isin(RATE_RECORDS)]
    if rates.empty:
        return f"the log has {', '.join(rows['metric'].unique())}{NO_RATE}"
    name = rates["metric"].iloc[0]
    if (rates["scope"] == PER_GPU).any():
        return f"{name} is per GPU, and no line says of how many; {state_sizes(len(study.runs))}"
    return (
        f"{name} of {rates['who'].nunique()} of several ranks only, or not "
        "positive; keep the log of every rank, or print the rate of all with scope global"
    )


def warmup_words(warmup: Warmup) -> str:
    """Return `10 steps`, `10 steps and 60 s`."""
    steps = f"{warmup.steps} step{'s' if warmup.steps != 1 else ''}"
    return f"{steps} and {warmup.seconds:g} s" if warmup.seconds else steps


class Target(Value, frozen=True, kw_only=True):
    """An accuracy (a fraction) to be reached from below, or a loss from above."""

    metric: Literal["accuracy", "loss"]
    value: float

    @property
    def higher(self) -> bool:
        """Whether a higher value is better."""
        return self.metric == "accuracy"

    def __str__(self) -> str:
        """Return it as `accuracy >= 0.93`."""
        return f"{self.metric} {'>=' if self.higher else '<='} {self.value:g}"
