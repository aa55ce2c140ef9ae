"""Plain rows -> the summary lines above the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.study import Warmup
from hpc_train.reports.answers import answers, baselines
from hpc_train.reports.doubts import doubts
from hpc_train.reports.numbers import whole
from hpc_train.reports.tables import OK, constants
from hpc_train.reports.transports import transport_doubts
from hpc_train.reports.words import counted, foreign, one_size

Row = Mapping[str, Any]
# Number of series with a line for answer and baseline.
MOST_LINES = 8
REGIMES = {
    "strong": "strong scaling: the same global batch at every size",
    "weak": "weak scaling: the same batch per rank",
    "mixed": "neither the global batch nor the batch per rank stays the same (regime mixed)",
}


def summary_lines(
    study: ExpectedStudy, runs: Sequence[Row], points: Sequence[Row]
) -> tuple[str, ...]:
    """Return the answer, the scope of the measurement, the baselines and the caveats."""
    done = sum(run["state"] == OK for run in runs)
    counted = (
        f"{done} of {len(runs)} logs with a result"
        if foreign(study)
        else f"{done} of {len(runs)} runs ok"
    )
    if not points:
        return (f"No point to compare: {counted}.",)
    measured = [counted, _regime(study, points), constants(points), _warmup(study, points)]
    return (
        *_first(list(answers(points)), "series"),
        f"Measured: {'; '.join(part for part in measured if part)}.",
        *_first(list(baselines(points)), "baselines"),
        *doubts(points),
        *transport_doubts(points),
    )


def _first(lines: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the first lines, and a line with the number of those that are only in the table."""
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    label = "Baseline" if what == "baselines" else "And"
    rest = len(lines) - MOST_LINES
    return (*lines[:MOST_LINES], f"{label}: {rest} more {what}, in the table of points.")


def _regime(study: ExpectedStudy, points: Sequence[Row]) -> str:
    """Return the derived regime, and its relation to the declared one."""
    regime = points[0]["regime"]
    if regime != "unknown":
        said = "as declared" if study.scaling else "derived from the runs, none declared"
        return f"{REGIMES[regime]}, {said}"
    if study.scaling:
        return f"{study.scaling} scaling declared, not checked: no two sizes with known batches"
    return "" if one_size(points) else "strong or weak is not known: batches not recorded"


def _warmup(study: ExpectedStudy, points: Sequence[Row]) -> str:
    if not any(row["n_ok"] for row in points):
        return ""
    if any(row["step_time_s"] is not None for row in points):
        if not study.warmup.steps and not study.warmup.seconds:
            return "no warm-up is left out"
        left = sorted({row["warmup_steps"] for row in points} - {None})
        rule = _rule(study.warmup)
        # The rule suffices if it equals the number of steps left out.
        more = "" if left in ([], [study.warmup.steps]) else f" ({_span(left)} steps)"
        return f"without each run's warm-up of {rule}{more}"
    if any(row["epoch_time_s"] is not None for row in points):
        return "no step times in the logs; the first of several epochs is left out"
    return "no step times in the logs"


def _rule(warmup: Warmup) -> str:
    steps = counted(warmup.steps, "step")
    return f"{steps} and {whole(warmup.seconds)} s" if warmup.seconds else steps


def _span(values: Sequence[int]) -> str:
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"
