"""Run and point tables -> the report of a scaling study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.jobs.operations import wrong_numbers
from hpc_train.jobs.study import Warmup
from hpc_train.reports.answer import MOST_NAMED, answer_lines
from hpc_train.reports.caveats import flag_caveats
from hpc_train.reports.point_and_series_names import (
    UNKNOWN,
    counted,
    foreign,
    one_size,
    place,
    regimes,
    series_heading,
    series_with,
    sizes,
)
from hpc_train.reports.points_table import (
    SIZE_COLUMNS,
    absent_notes,
    constants,
    fastest_notes,
    fastest_table,
    points_table,
    runs_table,
)
from hpc_train.reports.report import CAVEATS, MEASURED, NOT_KNOWN, OK, Report
from hpc_train.reports.value_format import Row, level_word, plain_rows, significant, whole
from hpc_train.runs.expected_runs import OF_WHICH, ExpectedStudy

if TYPE_CHECKING:
    import pandas as pd

_PLURALS = ("launcher", "site")
STATE_UNKNOWN = (
    "Logs without a run folder do not contain the state of their job: a log with a result counts "
    "as ok unless it contains a failure (records contain none). Logs with the same number of ranks "
    "are repetitions of one point; a log without a number is a point of its own (--gpus, --nodes "
    "and --ranks state it)."
)
WELCH = "Welch on logarithms"
PAIRED = "Student's t of the differences within the blocks of the nested study, on logarithms"
RATIOS = (
    "speedup = X(p)/X(p0) as a ratio of geometric means over the runs, 1 at the baseline by "
    "definition; ideal = ratio of the numbers of GPUs (of ranks, if there are no GPUs); "
    "efficiency = speedup/ideal."
)
REPLICATE = (
    "Intervals: {confidence}, {interval}; the replicate is the run, not a step. Rows "
    "of one series are correlated: they share the noise of their baseline."
)


def scaling_report(
    study: ExpectedStudy,
    runs_frame: pd.DataFrame,
    points_frame: pd.DataFrame,
    fastest_frame: pd.DataFrame | None = None,
    *,
    wide: bool = False,
) -> Report:
    """Return the report of a study: summary, points, then every run without result.

    `fastest_frame` is the comparison of the series at each size. The `wide` table of points has
    every column.
    """
    points = plain_rows(points_frame)
    fastest = [] if fastest_frame is None else plain_rows(fastest_frame)
    compared = () if fastest_frame is None else (fastest_table(fastest, points),)
    confidence = float(points[0]["confidence"]) if points else 0.95
    table, failed = points_table(points, confidence, wide=wide), runs_table(runs_frame)
    waiting = len(study.unfinished)
    return Report(
        title=_title(study, runs_frame, points)
        + (f" (partial: {waiting} of {len(study.runs)} runs not finished)" if waiting else ""),
        summary=summary_lines(study, runs_frame, points, fastest),
        tables=(table, *compared, failed),
        notes=(
            *_notes(study, runs_frame, points, confidence),
            *fastest_notes(fastest, confidence),
            *absent_notes(table, points),
        ),
        name=study.name,
        conditions=_conditions(study, points, confidence),
    )


def _conditions(study: ExpectedStudy, points: Sequence[Row], confidence: float) -> dict[str, Any]:
    return {
        "regime": " and ".join(regimes(points)) or "unknown",
        "declared": study.scaling,
        "confidence": confidence,
        "interval": f"{interval_words(points)}; the replicate is the run",
        "bands": "pointwise",
        "warmup_steps": study.warmup.steps,
        "warmup_seconds": study.warmup.seconds,
        "gate_efficiency": study.gates.efficiency,
    }


def _title(study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row]) -> str:
    """Return `NAME: strong scaling, batch 1024, 3 launchers, 4 sizes, n=5, 60 of 60 runs ok`."""
    ended = "logs with a result" if foreign(study) else "runs ok"
    done = f"{int((runs['state'] == OK).sum())} of {len(runs)} {ended}"
    parts = [*_scope(points), done] if points else [done]
    return f"{study.name}: {', '.join(part for part in parts if part)}"


def _scope(points: Sequence[Row]) -> Iterator[str]:
    known = " and ".join(regimes(points))
    many = len({tuple(row[name] for name in SIZE_COLUMNS) for row in points})
    if one_size(points):
        yield "one size" if (where := place(points[0])) == UNKNOWN else f"one size ({where})"
    else:
        yield f"{known} scaling" if known else "scaling"
        batches = {row["global_batch"] for row in points if row["n_ok"]}
        if len(batches) == 1 and (batch := batches.pop()):
            yield f"batch {whole(batch)}"
    if (series := len({row["series"] for row in points})) > 1:
        axis = series_heading(points)
        yield f"{series} {axis}s" if axis in _PLURALS else f"{series} series"
    if many > 1:
        yield f"{many} sizes"
    numbers = [row["n_ok"] for row in points if row["n_ok"]]
    if numbers:
        ends = dict.fromkeys((min(numbers), max(numbers)))
        yield f"n={' to '.join(map(str, ends))}"


def _notes(
    study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row], confidence: float
) -> tuple[str, ...]:
    notes = [*study.notes]
    if foreign(study):
        notes.append(STATE_UNKNOWN)
    if any(row["speedup"] is not None and not row["is_baseline"] for row in points):
        notes.append(RATIOS)
    if any(row["speedup_low"] is not None for row in points):
        level, words = f"pointwise {level_word(confidence)}", interval_words(points)
        notes.append(REPLICATE.format(confidence=level, interval=words))
    if any(row["step_time_s"] is not None and row["steps"] for row in points):
        notes.append(
            "step time = median over the steps of a run; the slowest rank counts in each step."
        )
    return (*notes, *hardware_notes(points, runs))


def interval_words(points: Sequence[Row]) -> str:
    """Return the interval of the speedups in words; some of them may be of pairs."""
    paired = [row["is_paired"] for row in points if row["speedup_low"] is not None]
    if not any(paired):
        return WELCH
    if all(paired):
        return PAIRED
    return f"{PAIRED}, for {sum(paired)} of {len(paired)} points; else {WELCH}"


# What is computed and not measured; docs/statistics.md defines the others.
_COMPUTED = {
    "tflops_per_gpu_computed": (
        "computed TFLOP/s a GPU = flops_per_sample x samples/s / GPUs; without flops_per_sample, 6 "
        "N x tokens/s / GPUs, N = parameters, all active and trained, without attention and "
        "recomputed activations"
    ),
    "mfu_computed": "computed MFU = TFLOP/s a GPU, printed or else computed, / gpu_peak_tflops",
    "power_per_rate_j": "power / rate is computed, not measured as energy",
}


def hardware_notes(points: Sequence[Row], runs: pd.DataFrame) -> Iterator[str]:
    """Yield how values were computed, if a point has them, and conditions that are no numbers."""
    wrong: dict[str, str] = {}
    for first, own in enumerate(runs["conditions"]):
        for text in wrong_numbers(own):
            wrong.setdefault(text, runs["run_id"].iloc[first])
    for text, name in wrong.items():
        yield f"{text} is no number above 0 for the run's precision, and not used (run {name})."
    for key, meaning in _COMPUTED.items():
        if any(row.get(key) is not None for row in points):
            yield f"{meaning}."


NO_STEPS, NO_STEPS_IN_TABLE = "no step times are recorded", "the table has no step times"
REGIMES = {
    "strong": "strong scaling: the same global batch at every size",
    "weak": "weak scaling: the same batch per rank",
    "mixed": "neither the global batch nor the batch per rank stays the same",
}


def summary_lines(
    study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row], fastest: Sequence[Row] = ()
) -> tuple[str, ...]:
    """Return the answer, the scope of the measurement and the caveats.

    `fastest` are the rows of the comparison of series.
    """
    answer = (*answer_lines(points, fastest, study.gates),) if points else ("No point to compare.",)
    guessed = [
        f"{CAVEATS}{text}."
        for text in (study.guessed, study.assumed)
        if text and not any(text in line for line in answer)
    ]
    if not points:
        return (*answer, *guessed)
    asked = [text for text in runs["problem"] if text.endswith(OF_WHICH)]
    reasons = [text for text in runs["problem"] if text and not text.endswith(OF_WHICH)]
    nothing: tuple[str, ...] = ()
    if reasons and not any(row["n_ok"] for row in points):
        nothing = (f"No run has a result: {reasons[0]}.",)
    measured = [_regime(study, points), constants(points), _warmup(study, runs, points)]
    return (
        *(f"{one} hpctrain report {study.asked} --rates job, or --rates rank" for one in asked[:1]),
        *_looks_weak(study, points),
        *(nothing or answer),
        *flag_caveats(points, implausible=True),
        *guessed,
        f"{MEASURED}{'; '.join(part for part in measured if part)}.",
        *flag_caveats(points),
        *_unknown(runs, points),
    )


def _unknown(runs: pd.DataFrame, points: Sequence[Row]) -> Iterator[str]:
    """Yield what nothing recorded, although the answer may depend on it."""
    lacking, named = [], sizes(points)
    for name in ("accuracy", "loss"):
        without = [row for row in points if row["n_ok"] and row[name] is None]
        if len(without) < sum(row["n_ok"] > 0 for row in points):
            lacking += [f"{name} at {named(row)}" for row in without[:MOST_NAMED]]
        elif name == "accuracy":
            lacking.append(name)
    lacking += ["order of runs"] * bool(runs["started"].isna().all())
    lacking += ["nodes"] * (not runs["node_list"].map(bool).any())
    if lacking:
        yield f"{NOT_KNOWN}{', '.join(lacking)}."


def _looks_weak(study: ExpectedStudy, points: Sequence[Row]) -> Iterator[str]:
    """Yield that step times contradict the assumed regime, and what settles it."""
    own = [row for row in points if row["looks_weak"] and row["step_time_s"] is not None]
    if own:
        first, last = own[0], max(own, key=lambda row: float(row["ideal"] or 0))
        named = sizes(points)
        yield (
            f"The step time hardly falls with the size ({significant(first['step_time_s'])} s at "
            f"{named(first)}, {significant(last['step_time_s'])} s at {named(last)}), which looks "
            f"like the same batch per rank: hpctrain report {study.asked} --scaling weak"
        )


def _regime(study: ExpectedStudy, points: Sequence[Row]) -> str:
    """Return the derived regime, and its relation to the declared one; else what was assumed."""
    found, named = regimes(points), sizes(points)
    batches = [row["global_batch"] or row["tokens_per_step"] for row in points]
    known = {named(row) for row, batch in zip(points, batches, strict=True) if batch}
    if found and len(known) > 1:
        said = "as declared" if study.scaling else "derived from the runs, none declared"
        several = [f"{REGIMES[regime]} ({series_with(regime, points)})" for regime in found]
        return f"{'; '.join(several) if len(found) > 1 else REGIMES[found[0]]}, {said}"
    if study.scaling:
        return f"{study.scaling} scaling declared, not checked: no two sizes with known batches"
    if one_size(points):
        return ""
    reason = "no two sizes with known batches" if known else "batches not recorded"
    if not any(row["n_ok"] for row in points):
        reason = "no run has a result"
    if found:
        return f"{found[0]} scaling assumed: {reason}"
    return f"strong or weak scaling: not known, {reason}"


def _warmup(study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row]) -> str:
    if not any(row["n_ok"] for row in points):
        return ""
    if any(row["step_time_s"] is not None for row in points):
        if not any(row["steps"] for row in points):
            return "step times as stated in the table"
        if not study.warmup.steps and not study.warmup.seconds:
            return "no warm-up steps are excluded"
        left = sorted({row["warmup_steps"] for row in points} - {None})
        rule = _rule(study.warmup)
        # The rule suffices if it equals the number of steps left out.
        more = "" if left in ([], [study.warmup.steps]) else f" ({_span(left)} steps)"
        return f"the warm-up of each run, {rule}{more}, is excluded"
    missing = NO_STEPS if any("parser" in own for own in runs["conditions"]) else NO_STEPS_IN_TABLE
    # Only of several epochs is the first left out.
    if ((runs["state"] == OK) & (runs["epochs"].fillna(0) > 1)).any():
        return f"{missing}; the first of several epochs is excluded"
    return missing


def _rule(warmup: Warmup) -> str:
    steps = counted(warmup.steps, "step")
    return f"{steps} and {whole(warmup.seconds)} s" if warmup.seconds else steps


def _span(values: Sequence[int]) -> str:
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"
