"""Run and point tables -> the report of a scaling study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hpc_train.model.expected_study import INTERVALS, ExpectedStudy, state_sizes
from hpc_train.model.metrics import BASES, BASIS_COLUMNS
from hpc_train.model.operations import wrong_numbers
from hpc_train.model.report import Cell, Column, Report, ReportTable
from hpc_train.model.study import Gates, Warmup
from hpc_train.reports.caveats import flag_caveats, implausible_caveats
from hpc_train.reports.fastest_series_table import fastest_notes, fastest_sentences, fastest_table
from hpc_train.reports.plain_rows import Row, plain_rows
from hpc_train.reports.point_and_series_names import (
    UNKNOWN,
    by_series,
    counted,
    foreign,
    has_own_baselines,
    one_size,
    place,
    regimes,
    series_heading,
    series_with,
    short_series,
    sizes,
    speedup_word,
    under,
)
from hpc_train.reports.recommended_sizes import (
    efficient_sizes,
    fastest_points,
    last_efficient,
    last_useful,
    least_doubling,
    least_efficiency,
    useful_doublings,
)
from hpc_train.reports.study_tables import (
    LESS,
    OK,
    ROOM,
    absent_notes,
    constants,
    points_table,
    runs_table,
)
from hpc_train.reports.value_format import (
    ABSENT,
    fixed,
    level_word,
    significant,
    whole,
    with_limits,
)

if TYPE_CHECKING:
    import pandas as pd

STATE_UNKNOWN = (
    "Logs without a run folder do not contain the state of their job: a log with a result counts "
    "as ok unless it contains a failure (records contain none). Logs with the same number of ranks "
    "are repetitions of one point; a log without a number is a point of its own (--gpus, --nodes "
    "and --ranks state it)."
)
PAIRED = "Student's t of the differences within the blocks of the nested study, on logarithms"
RATIOS = (
    "speedup = X(p)/X(p0) as a ratio of {means} over the runs, 1 at the baseline by "
    "definition; ideal = ratio of the numbers of GPUs (of ranks, if there are no GPUs); "
    "efficiency = speedup/ideal."
)
# Left out also where there is space, if they add no information.
NEVER_MISSED = ("nodes", "time_to_train_speedup", "common_speedup")
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
    columns: int | None = ROOM,
) -> Report:
    """Return the report of a study: summary, points, then every run without result.

    `fastest_frame` is the comparison of the series at each size. The table of points fits into
    `columns` characters if possible; None is the wide table, with every column.
    """
    points = plain_rows(points_frame)
    fastest = [] if fastest_frame is None else plain_rows(fastest_frame)
    compared = () if fastest_frame is None else (fastest_table(fastest, points),)
    confidence = float(points[0]["confidence"]) if points else 0.95
    wide, room = columns is None, columns or ROOM
    table, failed = points_table(points, confidence, wide=wide, room=room), runs_table(runs_frame)
    return Report(
        title=_title(study, points) + _partial(study),
        summary=summary_lines(study, runs_frame, points, fastest),
        tables=(table, *_of_series(study, points), *compared, failed),
        notes=(
            *_notes(study, runs_frame, points, confidence),
            *fastest_notes(fastest, confidence),
            *absent_notes(table, points),
            *_no_room(table, points),
        ),
        name=study.name,
        conditions=_conditions(study, points, confidence),
    )


def _of_series(study: ExpectedStudy, points: Sequence[Row]) -> Iterator[ReportTable]:
    if is_tabled(points):
        yield series_table(points, study.gates)


def _conditions(study: ExpectedStudy, points: Sequence[Row], confidence: float) -> dict[str, Any]:
    return {
        "regime": " and ".join(regimes(points)) or "unknown",
        "declared": study.scaling,
        "confidence": confidence,
        "interval": f"{interval_words(study, points)}; the replicate is the run",
        "bands": study.bands,
        "warmup_steps": study.warmup.steps,
        "warmup_seconds": study.warmup.seconds,
        "gate_efficiency": study.gates.efficiency,
    }


def _title(study: ExpectedStudy, points: Sequence[Row]) -> str:
    bases = " / ".join(dict.fromkeys(row["basis"] for row in points))
    if not bases:
        return study.name
    if one_size(points):
        where = place(points[0])
        return study.name if where == UNKNOWN else f"{study.name}: one size ({where})"
    kind = f"{' and '.join(regimes(points))} scaling".strip()
    return f"{study.name}: {kind}, {speedup_word(points)} by {bases}"


def _partial(study: ExpectedStudy) -> str:
    waiting = len(study.unfinished)
    return f" (partial: {waiting} of {len(study.runs)} runs not finished)" if waiting else ""


def _notes(
    study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row], confidence: float
) -> tuple[str, ...]:
    notes = [*study.notes]
    if foreign(study):
        notes.append(STATE_UNKNOWN)
    if any(row["speedup"] is not None and not row["is_baseline"] for row in points):
        means = "geometric means" if study.interval == "welch" else "mean times (1/X)"
        notes.append(RATIOS.format(means=means))
    if any(row["speedup_low"] is not None for row in points):
        level, words = f"{study.bands} {level_word(confidence)}", interval_words(study, points)
        notes.append(REPLICATE.format(confidence=level, interval=words))
    if any(row["step_time_s"] is not None and row["steps"] for row in points):
        notes.append(
            "step time = median over the steps of a run; the slowest rank counts in each step."
        )
    return (*notes, *hardware_notes(points, runs))


def interval_words(study: ExpectedStudy, points: Sequence[Row]) -> str:
    """Return the interval of the speedups in words; some of them may be of pairs."""
    paired = [row["is_paired"] for row in points if row["speedup_low"] is not None]
    if not any(paired):
        return INTERVALS[study.interval]
    if all(paired):
        return PAIRED
    return f"{PAIRED}, for {sum(paired)} of {len(paired)} points; else {INTERVALS[study.interval]}"


def _no_room(table: ReportTable, points: Sequence[Row]) -> Iterator[str]:
    shown = {column.key for column in table.columns}
    known = [key for key in LESS if any(row.get(key) is not None for row in points)]
    hidden = [key for key in known if key not in shown and key not in NEVER_MISSED]
    if hidden:
        yield (f"Columns that do not fit are in --wide, CSV and JSON: {', '.join(hidden)}.")


_MEANING = {
    "mfu": "MFU = median over a run's measured steps, mean over ranks, as printed; mean over runs",
    "tflops_per_gpu": (
        "TFLOP/s a GPU = median over a run's measured steps, mean over ranks, as printed (a total "
        "of the job is divided by its GPUs, else by its ranks); mean over runs"
    ),
    "tflops_per_gpu_computed": (
        "computed TFLOP/s a GPU = flops_per_sample x samples/s / GPUs; without flops_per_sample, 6 "
        "N x tokens/s / GPUs, N = parameters (Chowdhery et al., PaLM, 2022, appendix B; Narayanan "
        "et al., Megatron-LM, SC21): forward and backward pass of a transformer whose parameters "
        "are all active and trained, without attention (12 L d s a token) and without recomputed "
        "activations; only of runs that printed none"
    ),
    "mfu_computed": (
        "computed MFU = TFLOP/s a GPU, printed or else computed, / gpu_peak_tflops, the peak that "
        "the run, the study or the site's profile states for the precision of the run; only of "
        "runs that printed none"
    ),
    "memory_gib": "memory = highest value of any rank and step; the highest of the runs",
    "power_w": (
        "power = sum over all ranks, mean over a run's measured steps, as printed; mean over runs"
    ),
    "power_per_rank_w": (
        "power of a rank = mean over the ranks that printed one; it is not known of every rank, so "
        "there is no power of the job"
    ),
    "energy_j": (
        "energy = as printed of a whole run, else the sum over its ranks and steps, warm-up "
        "included; mean over runs"
    ),
    "energy_per_sample_j": (
        "J per sample = printed energy of the measured steps / their samples; without energy of "
        "steps, that of the run / all its samples; mean over runs"
    ),
    "energy_per_token_j": "J per token = J per sample / tokens of a sample",
    "power_per_rate_j": (
        "power / rate = power / samples per second, J per sample if that power is constant; it is "
        "computed, not measured as energy"
    ),
}


def hardware_notes(points: Sequence[Row], runs: pd.DataFrame) -> Iterator[str]:
    """Yield what each value is, if a point has it, and the conditions that are no numbers."""
    wrong: dict[str, str] = {}
    for first, own in enumerate(runs["conditions"]):
        for text in wrong_numbers(own):
            wrong.setdefault(text, runs["run_id"].iloc[first])
    for text, name in wrong.items():
        yield f"{text} is no number above 0 for the run's precision, and not used (run {name})."
    for key, meaning in _MEANING.items():
        if any(row.get(key) is not None for row in points):
            yield f"{meaning}."


NO_GATES = Gates()
NO_STEPS, NO_STEPS_IN_TABLE = "no step times are recorded", "the table has no step times"
REGIMES = {
    "strong": "strong scaling: the same global batch at every size",
    "weak": "weak scaling: the same batch per rank",
    "mixed": "neither the global batch nor the batch per rank stays the same (regime mixed)",
}


def summary_lines(
    study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row], fastest: Sequence[Row] = ()
) -> tuple[str, ...]:
    """Return the answer, the scope of the measurement, the baselines and the caveats.

    `fastest` are the rows of the comparison of series.
    """
    done = int((runs["state"] == OK).sum())
    ended = "logs with a result" if foreign(study) else "runs ok"
    counted = f"{done} of {len(runs)} {ended}"
    guessed = (f"Caveats: {study.guessed}.",) if study.guessed else ()
    if not points:
        return (*guessed, f"No point to compare: {counted}.")
    measured = [counted, _regime(study, points), constants(points), _warmup(study, runs, points)]
    return (
        *implausible_caveats(points),
        *guessed,
        *first_lines(list(fastest_sentences(fastest, points)), "fastest series"),
        *first_lines(list(answers(points, study.gates)), "series"),
        *first_lines(list(fastest_points(points, fastest, study)), "fastest points"),
        f"Measured: {'; '.join(part for part in measured if part)}.",
        *first_lines(list(() if is_tabled(points) else baselines(points)), "baselines"),
        *first_lines(list(common_baselines(points)), "common baselines"),
        *flag_caveats(points),
    )


def _regime(study: ExpectedStudy, points: Sequence[Row]) -> str:
    """Return the derived regime, and its relation to the declared one."""
    found = regimes(points)
    if found:
        said = "as declared" if study.scaling else "derived from the runs, none declared"
        several = [f"{REGIMES[regime]} ({series_with(regime, points)})" for regime in found]
        return f"{'; '.join(several) if len(found) > 1 else REGIMES[found[0]]}, {said}"
    if study.scaling:
        return f"{study.scaling} scaling declared, not checked: no two sizes with known batches"
    if one_size(points):
        return ""
    known = any(row["global_batch"] is not None for row in points)
    reason = "no two sizes with known batches" if known else "batches not recorded"
    if not any(row["n_ok"] for row in points):
        reason = "no run has a result"
    return f"the regime is not known: {reason}"


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
    missing = NO_STEPS if _are_logs(runs) else NO_STEPS_IN_TABLE
    # Only of several epochs is the first left out.
    if ((runs["state"] == OK) & (runs["epochs"].fillna(0) > 1)).any():
        return f"{missing}; the first of several epochs is excluded"
    return missing


def _are_logs(runs: pd.DataFrame) -> bool:
    """Whether some program printed the results; a person stated those of a table."""
    return any("parser" in own for own in runs["conditions"])


def _rule(warmup: Warmup) -> str:
    steps = counted(warmup.steps, "step")
    return f"{steps} and {whole(warmup.seconds)} s" if warmup.seconds else steps


def _span(values: Sequence[int]) -> str:
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def answers(points: Sequence[Row], gates: Gates = NO_GATES) -> Iterator[str]:
    """Yield for each series its scaling: the speedup of its best point, or why there is none.

    If the best point is not the largest one, the largest is also named. The sizes that reach the
    limits of efficiency and doubling follow. One sentence replaces those that a table has.
    """
    if points and not any(row["n_ok"] for row in points):
        yield "No run has a result."
        return
    alone, firsts = one_size(points), _Baselines(points)
    tabled = is_tabled(points)
    if tabled:
        yield series_sentence(points)
    for series, own in by_series(points, itemgetter("series")).items():
        known = [r for r in own if r["speedup"] is not None and not r["is_baseline"]]
        if known:
            yield from () if tabled else _scaling(own, known, firsts, gates)
        elif not any(row["n_ok"] for row in own):
            yield f"No run{under(series)} has a result."
        elif own[0]["note"] and not alone:
            reason = str(own[0]["note"]).removeprefix("no speedup: ")
            yield f"No speedup{under(series)}: {reason}."
            yield from _trained(own, firsts.named, str(series))
        elif not alone:
            yield f"No point{under(series)} but the baseline has a result: nothing to compare."
    if alone:
        yield _alone(place(points[0]), sum(row["n_submitted"] for row in points))


def _scaling(
    own: Sequence[Row], known: Sequence[Row], firsts: _Baselines, gates: Gates
) -> Iterator[str]:
    """Yield the speedup of a series and its useful sizes, in one sentence if there are several."""
    series, several = own[0]["series"], firsts.several
    text = _comparison(known, firsts, "" if several else str(series))
    limits = (efficient_sizes, useful_doublings)
    reached = "; ".join(filter(None, (one(own, gates, firsts.named) for one in limits)))
    if several:
        relative = f"{under(series).strip()}, relative to its own smallest size: "
        yield _sentence(relative + "; ".join(filter(None, (text, reached))))
    else:
        yield from map(_sentence, filter(None, (text, reached)))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _alone(where: str, logs: int) -> str:
    if where == UNKNOWN:
        return f"The number of ranks is not known, so nothing is compared; {state_sizes(logs)}."
    return f"One size only ({where}): no speedup; a study measures several sizes."


class _Baselines:
    """Names of points, and the baseline of each series or, if it has none, the common one."""

    def __init__(self, points: Sequence[Row]) -> None:
        self.named, self.several = sizes(points), has_own_baselines(points)
        firsts = [row for row in points if row["is_baseline"]]
        self._first = firsts[0] if firsts else None
        # If there are several, the first one.
        self._own = {row["series"]: row for row in reversed(firsts)}

    def of(self, row: Row) -> Row | None:
        """Return the baseline of a point."""
        return self._own.get(row["series"], self._first)


def _comparison(known: Sequence[Row], firsts: _Baselines, series: str) -> str:
    """Return the speedup of the best point; `series` is empty if the sentence names it already."""
    best = max(known, key=lambda row: float(row["speedup"]))
    largest = max(known, key=lambda row: (row["ideal"] or 0, row["ranks"] or 0))
    base, named = firsts.of(best), firsts.named
    first = named(base) if base else "the baseline"
    if base and base["series"] != best["series"]:
        first += under(base["series"])
    who, shown = named(best), with_limits(best, "speedup", 2)
    one = who.startswith(("1 ", "an ")) and "," not in who
    verb, than = "trains" if one else "train", f"times as fast as {first}"
    if best["regime"] == "weak":
        verb, than = "does" if one else "do", f"times the work of {first} in the same time"
    text = f"{who}{under(series) if series else ''} {verb} {shown} {than}{_share(best)}"
    if largest is not best:
        text += f"; {named(largest)} {with_limits(largest, 'speedup', 2)}{_share(largest)}"
    return text


def _trained(own: Sequence[Row], named: Callable[[Row], str], series: str) -> Iterator[str]:
    """Yield the speedup of the time to train, which is also defined across batch sizes."""
    timed = [r for r in own if r["time_to_train_speedup"] is not None]
    base = next((row for row in timed if row["is_baseline"]), None)
    others = [row for row in timed if row is not base]
    if base and others:
        best = max(others, key=lambda row: float(row["time_to_train_speedup"]))
        shown = with_limits(best, "time_to_train_speedup", 2)
        both = f"{named(best)} complete the training {shown} times as fast as {named(base)}"
        yield f"Time to train{under(series)}: {both}."


def _share(row: Row) -> str:
    if row["efficiency"] is None:
        return ""
    return f" (efficiency {fixed(row['efficiency'], 0, 100)} %)"


# Number of series with a line for answer and baseline.
MOST_LINES = 8
MORE = {
    "fastest series": "{} more series are the fastest at a size: table Comparison at each size.",
    "series": "{} more series are in the table of points.",
    "fastest points": "{} more fastest points are in the table of points.",
    "baselines": "Baselines of {} more series are in the table of points.",
    "common baselines": "Baselines common to {} more groups of series are in the table of points.",
}


def first_lines(lines: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the first lines, and how many are left to the table."""
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    return (*lines[:MOST_LINES], MORE[what].format(len(lines) - MOST_LINES))


def baselines(points: Sequence[Row]) -> Iterator[str]:
    """Yield each series' baseline in absolute numbers."""
    one, named = one_size(points), sizes(points)
    for row in points:
        if (row["is_baseline"] or one) and (number := speed(row)):
            what = "Result" if one else "Baseline"
            yield f"{what}{under(row['series'])}: {named(row)}, {number} (n={row['n_ok']})."


def common_baselines(points: Sequence[Row]) -> Iterator[str]:
    """Yield the baselines that several series share, unless each is its series' only one."""
    named = sizes(points)
    for row in points if has_own_baselines(points) else ():
        if row["is_common_baseline"]:
            where = f"{named(row)}{under(row['series'])}"
            yield f"Baseline common to all comparable series: {where}, the fastest of that size."


def speed(row: Row) -> str:
    """Return `2240 samples/s, 56.35 ms a step`: the basis, and the step time if there is one."""
    value, unit = row[BASIS_COLUMNS[row["basis"]]], BASES[row["basis"]].in_sentence
    numbers = [f"{significant(value)} {unit}"] if value is not None else []
    if row["basis"] == "throughput" and row["step_time_s"] is not None:
        numbers.append(f"{significant(row['step_time_s'] * 1e3)} ms a step")
    return ", ".join(numbers)


TITLE = "Scaling of each series"
# A summary has a sentence for each of so many series.
MOST_SENTENCES = 3
# A table of more series is as long as the table of points.
MOST_ROWS = 100


class _Series:
    """A series with results: its baseline, and its point with the largest speedup."""

    def __init__(self, name: str, own: Sequence[Row]) -> None:
        self.name, self.own = name, own
        self.base = next((row for row in own if row["is_baseline"]), None)
        known = [row for row in own if row["speedup"] is not None and not row["is_baseline"]]
        self.best = max(known, key=lambda row: float(row["speedup"]), default=None)


def is_tabled(points: Sequence[Row]) -> bool:
    """Whether a table says how each series scales: several with baselines of their own."""
    return has_own_baselines(points) and MOST_SENTENCES < len(_scaled(points)) <= MOST_ROWS


def series_sentence(points: Sequence[Row]) -> str:
    """Return the largest and the smallest of the best speedups of all series, and the table."""
    axis, named = series_heading(points), sizes(points)
    best = [(one, one.best) for one in _scaled(points) if one.best]
    best.sort(key=lambda pair: float(pair[1]["speedup"]))
    least, most = (
        f"{fixed(row['speedup'], 2)} ({short_series(one.name, axis)}, {named(row)})"
        for one, row in (best[0], best[-1])
    )
    return (
        f"Largest {speedup_word(points)} of each of {len(best)} series, relative to its own "
        f"smallest size: {least} to {most}; table {TITLE}."
    )


def series_table(points: Sequence[Row], gates: Gates) -> ReportTable:
    """Return a row for each series: baseline, largest speedup, and its useful sizes."""
    columns = list(_columns(points, gates))
    rows = tuple(
        tuple(Cell(text=(text := show(one)), value=text) for _, show in columns)
        for one in _scaled(points)
    )
    return ReportTable(title=TITLE, columns=tuple(column for column, _ in columns), rows=rows)


def _scaled(points: Sequence[Row]) -> list[_Series]:
    every = by_series(points, itemgetter("series")).items()
    return [one for one in (_Series(str(name), own) for name, own in every) if one.best]


def _columns(
    points: Sequence[Row], gates: Gates
) -> Iterator[tuple[Column, Callable[[_Series], str]]]:
    axis, named = series_heading(points), sizes(points)
    level = level_word(float(points[0]["confidence"]))

    def size(row: Row | None) -> str:
        return named(row) if row else ABSENT

    def last(one: _Series, key: str, row: Row | None) -> str:
        known = any(each[key] is not None for each in one.own if each is not one.base)
        return "none" if known and row is None else size(row)

    yield (
        Column(key="series", heading=axis or "series", align="left"),
        lambda one: short_series(one.name, axis),
    )
    yield Column(key="baseline", heading="baseline", drop=3), lambda one: size(one.base)
    yield Column(key="result", heading="its result", drop=2), lambda one: _result(one.base)
    yield (
        Column(key="speedup", heading=f"largest own-series\nspeedup [{level}]"),
        lambda one: with_limits(one.best, "speedup", 2) if one.best else ABSENT,
    )
    yield Column(key="at", heading="at"), lambda one: size(one.best)
    yield (
        Column(key="efficient", heading=f"efficiency\n≥ {least_efficiency(gates)}\nup to"),
        lambda one: last(one, "efficiency", last_efficient(one.own, gates)),
    )
    yield (
        Column(key="doubled", heading=f"doublings of\n{least_doubling(gates)} up to", drop=1),
        lambda one: last(one, "doubling", last_useful(one.own, gates)),
    )


def _result(row: Row | None) -> str:
    if row is None:
        return ABSENT
    number = significant(row[BASIS_COLUMNS[row["basis"]]])
    return f"{number} {BASES[row['basis']].in_sentence}"
