"""Run and point tables -> the report of a scaling study, and its answer: how far it scales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.jobs.operations import wrong_numbers
from hpc_train.jobs.study import ALONE, Gates
from hpc_train.reports.report import (
    CAVEATS,
    LEVEL,
    MEASURED,
    NOT_KNOWN,
    OK,
    UNKNOWN,
    Report,
    Row,
    counted,
    fixed,
    flag_caveats,
    foreign,
    grouped,
    levels_word,
    one_size,
    place,
    plain_rows,
    rate,
    regimes,
    series_heading,
    short_series,
    significant,
    size_unit,
    sizes,
    under,
    whole,
    with_limits,
)
from hpc_train.reports.tables import (
    FASTER,
    METHOD,
    NO_SPREAD,
    ONE_RUN,
    SIZE_COLUMNS,
    absent_notes,
    constants,
    fastest_table,
    points_table,
    runs_table,
)
from hpc_train.runs.expected_runs import OF_EACH_RANK, ExpectedStudy, state_sizes
from hpc_train.scaling.points import CONFIDENCE

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
    "Intervals: pointwise {level}, {interval}; the replicate is the run, not a step. Rows "
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
    table, failed = points_table(points, wide=wide), runs_table(runs_frame)
    waiting = len(study.unfinished)
    return Report(
        title=_title(study, runs_frame, points)
        + (f" (partial: {waiting} of {len(study.runs)} runs not finished)" if waiting else ""),
        summary=summary_lines(study, runs_frame, points, fastest),
        tables=(table, fastest_table(fastest, points), failed),
        notes=(
            *_notes(study, runs_frame, points),
            *(
                METHOD.format(levels=levels_word(fastest), confidence=LEVEL, pairs=number)
                for number in {row["comparisons"] for row in fastest[:1]} - {0}
            ),
            *absent_notes(points),
        ),
        name=study.name,
        conditions={
            "regime": " and ".join(regimes(points)) or "unknown",
            "declared": study.scaling,
            "confidence": CONFIDENCE,
            "interval": f"{interval_words(points)}; the replicate is the run",
            "bands": "pointwise",
            "warmup_steps": study.warmup.steps,
            "warmup_seconds": study.warmup.seconds,
            "gate_efficiency": study.gates.efficiency,
        },
    )


def _title(study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row]) -> str:
    """Return `NAME: strong scaling, batch 1024, 3 launchers, 4 sizes, n=5, 60 of 60 runs ok`."""
    parts, known = [], " and ".join(regimes(points))
    many = len({tuple(row[name] for name in SIZE_COLUMNS) for row in points})
    if one_size(points):
        where = place(points[0])
        parts.append("one size" if where == UNKNOWN else f"one size ({where})")
    elif points:
        parts.append(f"{known} scaling" if known else "scaling")
        batches = {row["global_batch"] for row in points if row["n_ok"]}
        if len(batches) == 1 and (batch := batches.pop()):
            parts.append(f"batch {whole(batch)}")
    if (series := len({row["series"] for row in points})) > 1:
        axis = series_heading(points)
        parts.append(f"{series} {axis}s" if axis in _PLURALS else f"{series} series")
    if many > 1:
        parts.append(f"{many} sizes")
    numbers = sorted(row["n_ok"] for row in points if row["n_ok"])
    if numbers:
        parts.append(f"n={' to '.join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))}")
    ended = "logs with a result" if foreign(study) else "runs ok"
    parts.append(f"{int((runs['state'] == OK).sum())} of {len(runs)} {ended}")
    return f"{study.name}: {', '.join(parts)}"


def _notes(study: ExpectedStudy, runs: pd.DataFrame, points: Sequence[Row]) -> Iterator[str]:
    """Yield the notes of the study, and how the values of the points were computed."""
    yield from study.notes
    if foreign(study):
        yield STATE_UNKNOWN
    if any(row["speedup"] is not None and not row["is_baseline"] for row in points):
        yield RATIOS
    if any(row["speedup_low"] is not None for row in points):
        yield REPLICATE.format(level=LEVEL, interval=interval_words(points))
    if any(row["step_time_s"] is not None and row["steps"] for row in points):
        yield "step time = median over the steps of a run; the slowest rank counts in each step."
    wrong: dict[str, str] = {}
    for run, own in zip(runs["run_id"], runs["conditions"], strict=True):
        wrong = dict.fromkeys(wrong_numbers(own), run) | wrong
    for text, name in wrong.items():
        yield f"{text} is no number above 0 for the run's precision, and not used (run {name})."
    for key, meaning in _COMPUTED.items():
        if any(row.get(key) is not None for row in points):
            yield f"{meaning}."


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
}


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
        if text and not any(text in line for line in answer) and not text.startswith("if ")
    ]
    if not points:
        return (*answer, *guessed)
    reasons = [text for text in runs["problem"] if text]
    nothing: tuple[str, ...] = ()
    if reasons and not any(row["n_ok"] for row in points):
        option = f"; {study.guessed}" if study.guessed.startswith("if ") else ""
        nothing = (f"No run has a result: {reasons[0]}{option}.",)
    measured = [_regime(study, points), constants(points), _warmup(study, runs, points)]
    return (
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
    lacking += ["node names"] * (not runs["node_list"].map(bool).any())
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
            f"like the same batch per rank: hpctrain report {study.asked} --scaling weak; ranks of "
            "a script that never calls init_process_group work alone, and have no speedup"
        )


def _regime(study: ExpectedStudy, points: Sequence[Row]) -> str:
    """Return the derived regime, and its relation to the declared one; else what was assumed."""
    found, named = regimes(points), sizes(points)
    batches = [row["global_batch"] or row["tokens_per_step"] for row in points]
    known = {named(row) for row, batch in zip(points, batches, strict=True) if batch}
    if found and len(known) > 1:
        said = "as declared" if study.scaling else "derived from the runs, none declared"
        several = []
        for regime in found:
            own = dict.fromkeys(str(row["series"]) for row in points if row["regime"] == regime)
            names = ", ".join(own) if len(own) <= MOST else f"{len(own)} series"
            several.append(f"{REGIMES[regime]} ({names})")
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
    if all(row["step_time_s"] is None for row in points):
        is_log = any("parser" in own for own in runs["conditions"])
        missing = NO_STEPS if is_log else NO_STEPS_IN_TABLE
        # Only of several epochs is the first left out.
        several = ((runs["state"] == OK) & (runs["epochs"].fillna(0) > 1)).any()
        return f"{missing}; the first of several epochs is excluded" if several else missing
    if not any(row["steps"] for row in points):
        return "step times as stated in the table"
    if not study.warmup.steps and not study.warmup.seconds:
        return "no warm-up steps are excluded"
    left = sorted({row["warmup_steps"] for row in points} - {None})
    # The rule suffices if it equals the number of steps left out.
    ends = " to ".join(map(str, dict.fromkeys((left[0], left[-1])))) if left else ""
    more = "" if left in ([], [study.warmup.steps]) else f" ({ends} steps)"
    rule = counted(study.warmup.steps, "step")
    rule += f" and {whole(study.warmup.seconds)} s" if study.warmup.seconds else ""
    return f"the warm-up of each run, {rule}{more}, is excluded"


# Series with a line of their own; of more, the fastest one.
MOST = 4
MOST_NAMED = 6
# Limit of the efficiency of a study without gates.
EFFICIENCY = 0.7
_ROUNDING = 1e-9
SAME = "no difference seen"
ONE_SIZE = "One size only ({where}): no speedup; a study measures several sizes."
_ENDS = ("", "_low", "_high")
Size = tuple[object, ...]


class _Points:
    """The points of a report: names, baselines, and pairs of series at one size."""

    def __init__(self, points: Sequence[Row], fastest: Sequence[Row]) -> None:
        self.named, self._axis = sizes(points), series_heading(points)
        self._unit = size_unit(points).key
        self.own = grouped(points, lambda row: str(row["series"]))
        self._first = next((row for row in points if row["is_baseline"]), None)
        self._base = {row["series"]: row for row in reversed(points) if row["is_baseline"]}
        self._pairs = {(row["fastest"], row["series"], _size(row)): row for row in fastest}
        # Series that did the same work.
        work = {row[name]: row["group"] for row in fastest for name in ("fastest", "series")}
        self.groups = [*grouped(self.own, lambda name: str(work.get(name, name))).values()]
        self.alone = one_size(points)

    def label(self, series: str) -> str:
        """Return `srun: `, or nothing for the only series."""
        return (
            "" if series == ALONE or len(self.own) == 1 else f"{short_series(series, self._axis)}: "
        )

    def base(self, row: Row) -> Row | None:
        """Return the baseline of a point: of its series, else the common one."""
        return self._base.get(row["series"], self._first)

    def best(self, names: Sequence[str], *, largest: bool) -> Row | None:
        """Return the fastest point of some series, or the fastest of their largest size."""
        rates = [(rate(row, row["basis"]) or 0.0, row) for name in names for row in self.own[name]]
        known = [(largest * self.size(row), speed, row) for speed, row in rates if speed]
        return max(known, key=itemgetter(0, 1), default=(0, 0, None))[2]

    def size(self, row: Row) -> float:
        """Return the size of a point in the unit of the report, 0 if it is not known."""
        return float(row[self._unit] or 0)

    def pair(self, leader: str, other: str, size: Size) -> Row | None:
        """Return how much slower than `leader` the other series is, if they were compared."""
        if row := self._pairs.get((leader, other, size)):
            return row
        if row := self._pairs.get((other, leader, size)):
            ends = dict(zip(_ENDS, ("", "_high", "_low"), strict=True)).items()
            turned = {f"ratio{a}": row[f"ratio{b}"] for a, b in ends}
            return {**row, **{n: v and 1 / v for n, v in turned.items()}, "not_ok": ""}
        return None


def answer_lines(points: Sequence[Row], fastest: Sequence[Row], gates: Gates) -> Iterator[str]:
    """Yield the answer: a line for each series, or for the fastest of many.

    The line of the fastest series at the largest size has its result, and the speedup from its
    baseline; those of the series that did the same work how much slower they are.
    """
    if not any(row["n_ok"] for row in points):
        yield "No run has a result."
        return
    if one_size(points):
        where = place(points[0])
        if where == UNKNOWN:
            what = state_sizes(sum(row["n_submitted"] for row in points))
            yield f"The number of ranks is not known, so nothing is compared; {what}."
        else:
            yield ONE_SIZE.format(where=where)
    found = _Points(points, fastest)
    short = len(found.own) > MOST
    yield from _changing(found, points)
    for count, group in enumerate(found.groups):
        if short and count == MOST:
            yield f"{len(found.groups) - MOST} more series, each with other work: see the table."
            break
        yield from _group(found, group, short=short)
    if len(found.own) == 1:
        yield from _efficient(found, points, gates)


def _changing(found: _Points, points: Sequence[Row]) -> Iterator[str]:
    """Yield that a setting changes with the size, if no two series have a size in common."""
    places: dict[str, list[str]] = {}
    for row in points:
        places.setdefault(str(row["series"]), []).append(found.named(row))
    every = [place for own in places.values() for place in own]
    if 1 < len(places) <= MOST and len(set(every)) == len(every) and not found.alone:
        where = ", ".join(
            f"{found.label(name).removesuffix(': ')} at {together(own)}"
            for name, own in places.items()
        )
        what = series_heading(points) or "a setting"
        yield f"{what} changes with the size, so no series has all sizes: {where}."


def _efficient(found: _Points, points: Sequence[Row], gates: Gates) -> Iterator[str]:
    """Yield at which sizes the efficiency reaches its limit: that of the gate, else 70 %."""
    limit = EFFICIENCY if gates.efficiency is None else gates.efficiency
    later = [row for row in points if row["efficiency"] is not None and not row["is_baseline"]]
    later.sort(key=found.size)
    below = [row for row in later if row["efficiency"] < limit - _ROUNDING]
    least, above = f"{100 * limit:.3g} %", len(later) - len(below)
    if not later:
        return
    if not below:
        every = "every" if len(later) == len(points) - 1 else "every measured"
        yield f"Efficiency is at least {least} at {every} size."
    elif above and below == later[above:]:
        yield f"Efficiency is at least {least} up to {found.named(later[above - 1])}."
    else:
        only = " only" if above else ""
        where = together([found.named(row) for row in below])
        yield f"Efficiency is below {least} at {where}{only}."


def _group(found: _Points, group: Sequence[str], *, short: bool) -> Iterator[str]:
    top = found.best(group, largest=True)
    if top is None:
        yield f"{found.label(group[0])}no run has a result."
        return
    leader = str(top["series"])
    yield f"{found.label(leader)}{_result(found, top, leader)}."
    others = [name for name in group if name != leader]
    if short and len(others) > 1:
        yield f"{len(others)} other series: see the table."
    else:
        for name in others:
            yield f"{found.label(name)}{_beside(found, top, name)}."


def _result(found: _Points, top: Row, series: str) -> str:
    """Return `32 GPUs 3026 samples/s, 7.2 [7.0, 7.4] times 4 GPUs, efficiency 90 %`."""
    text = f"{found.named(top)} {speed(top)}"
    base = found.base(top)
    first = found.named(base) if base else "the baseline"
    if base and base["series"] != series:
        first += under(base["series"])
    if top["is_baseline"] or top["speedup"] is None:
        return text + _why_none(found, series)
    basis = BASES[top["basis"]]
    # An epoch is the same data at every size, and a training the same training.
    grows = top["regime"] == "weak" and (basis.is_rate or basis.per_step)
    work = "the work of " if grows else ""
    text += f", {with_limits(top, 'speedup', 2)} times {work}{first}"
    if work:
        text += " in the same time"
    if top["efficiency"] is not None:
        text += f", efficiency {fixed(top['efficiency'], 0, 100)} %"
    if top["assumption"]:
        text += f", {top['assumption']}"
        if top["assumption"].endswith(OF_EACH_RANK) and top["ideal"]:
            text += f" ({fixed(top['speedup'] * top['ideal'], 2)} times)"
    best = found.best([series], largest=False)
    if best is not None and best is not top:
        text += f"; fastest: {found.named(best)} {speed(best)}"
    return text


def _why_none(found: _Points, series: str) -> str:
    own = found.own[series]
    reason = next((str(row["note"]) for row in own if row["note"]), "")
    if (
        found.alone
        or not reason
        or any(row["speedup"] is not None and not row["is_baseline"] for row in own)
    ):
        return ""
    return f"; no speedup: {reason.removeprefix('no speedup: ')}"


def _beside(found: _Points, top: Row, series: str) -> str:
    """Return `5.0 % slower [1.7, 8.3] at 32 GPUs; no difference seen at 4 and 8 GPUs`."""
    leader, where = str(top["series"]), found.named(top)
    at = found.pair(leader, series, _size(top))
    if at is None or at["ratio"] is None:
        best = found.best([series], largest=True)
        lacks = f"no result at {where} ({at['not_ok']}); " if at and at["not_ok"] else ""
        return f"{lacks}{_result(found, best, series)}" if best else f"{lacks}no run has a result"
    near: dict[str, list[str]] = {}
    for row in found.own[series]:
        pair = found.pair(leader, series, _size(row))
        if pair and pair["ratio"] is not None:
            near.setdefault(_word(pair), []).append(found.named(row))
    text = "" if _word(at) == SAME else f"{_slower(at)} at {where}"
    for word in (SAME, "faster"):
        if word in near:
            text += f"{'; ' * bool(text)}{word} at {together(near[word])}"
    return text


def _word(pair: Row) -> str:
    if pair["verdict"] == FASTER and pair["ratio"] is not None:
        return "slower" if pair["ratio"] > 1 else "faster"
    return pair["verdict"] if pair["verdict"] in (ONE_RUN, NO_SPREAD) else SAME


def _slower(pair: Row) -> str:
    """Return `5.0 % slower [1.7, 8.3]`: 1 - 1/ratio, as a share of the faster one's speed."""
    word = _word(pair)
    if word == SAME:
        return word
    share = f"{_percent(pair['ratio'])} % slower"
    if word != "slower":
        return f"{share} (n=1)" if word == ONE_RUN else f"{share} (repetitions are equal)"
    return f"{share} [{_percent(pair['ratio_low'])}, {_percent(pair['ratio_high'])}]"


def _percent(ratio: float | None) -> str:
    return significant(100 * (1 - 1 / ratio), 2) if ratio else "--"


def speed(row: Row) -> str:
    """Return `2240 samples/s`, `56.35 ms a step`: the value of the basis of a point."""
    value, basis = row[BASIS_COLUMNS[row["basis"]]], BASES[row["basis"]]
    if basis.per_step and value is not None:
        return f"{significant(value * 1e3)} ms a step"
    return f"{significant(value)} {basis.in_sentence}"


def _size(row: Row) -> Size:
    return tuple(row[name] for name in SIZE_COLUMNS)


def together(named: Sequence[str]) -> str:
    """Return `1, 2 and 4 GPUs`, `1 GPU to 512 GPUs (10 sizes)`."""
    if len(named) > MOST_NAMED:
        return f"{len(named)} sizes from {named[0]} to {named[-1]}"
    if len(named) == 1:
        return named[0]
    words = [name.split(" ") for name in named]
    if all(len(word) == 2 and word[1].rstrip("s") == words[-1][1].rstrip("s") for word in words):
        numbers = [word[0] for word in words]
        return f"{', '.join(numbers[:-1])} and {numbers[-1]} {words[-1][1]}"
    return f"{'; '.join(named[:-1])} and {named[-1]}"
