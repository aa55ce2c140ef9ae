"""Plain rows -> the summary above the table: the answer, what was measured, the baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.study import Gates, Warmup
from hpc_train.reports.baseline_sentences import baselines, common_baselines
from hpc_train.reports.caveats import flag_caveats, implausible_caveats
from hpc_train.reports.fastest_series_table import fastest_sentences
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import (
    UNKNOWN,
    by_series,
    counted,
    foreign,
    has_own_baselines,
    one_size,
    place,
    regimes,
    series_with,
    sizes,
    under,
)
from hpc_train.reports.recommended_sizes import (
    efficient_sizes,
    fastest_points,
    useful_doublings,
)
from hpc_train.reports.series_scaling_table import is_tabled, series_sentence
from hpc_train.reports.study_tables import OK, constants
from hpc_train.reports.summary_limit import first_lines
from hpc_train.reports.value_format import fixed, whole, with_limits

if TYPE_CHECKING:
    import pandas as pd

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
        yield _alone(place(points[0]))


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


def _alone(where: str) -> str:
    if where == UNKNOWN:
        return (
            "The number of ranks is not known: nothing to compare; "
            "let the run print world_size (hpctrain help events)."
        )
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
