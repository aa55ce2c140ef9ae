"""Samples and time to a target, and the score of MLPerf."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import isnan

from hpc_train.errors import ReportError
from hpc_train.tables.efficiency_and_cost_formulas import above
from hpc_train.tables.plausible_range import LEAST, MOST, bounded

LEAST_RUNS = 3
_OLYMPIC = 5


def samples_to_target(
    samples: Sequence[float], quality: Sequence[float], target: float, *, higher: bool = True
) -> float | None:
    """Return the samples seen at the first evaluation that reached a target; None if none did.

    (MLPerf Training rules: the run ends with the first evaluation at the target.) `higher` is False
    for a loss or perplexity.

    Raises:
        ReportError: not one quality for each number of samples.
    """
    if len(samples) != len(quality):
        raise ReportError(f"{len(quality)} evaluations at {len(samples)} numbers of samples")
    reached = [
        seen
        for seen, value in zip(samples, quality, strict=True)
        if (value >= target if higher else value <= target)
    ]
    return min(reached, default=None)


def statistical_efficiency(baseline: float | None, samples: float | None) -> float | None:
    """Return samples_to_target(B0)/samples_to_target(B), below 1 where a larger batch learns less.

    (Qiao et al., Pollux, OSDI 2021, for the name.) None where a target was not reached: then it is
    not measured, whatever the throughput.
    """
    if baseline is None or samples is None:
        return None
    return _known(_share(baseline, samples))


def time_to_accuracy(
    samples: float | None, rate: float, evaluation_s: float = 0.0, startup_s: float = 0.0
) -> float | None:
    """Return samples_to_target/X + evaluation + start-up, [s]; None without a target reached.

    Of several runs the score is the mean without the best and the worst, as MLPerf has it
    (`tables.mlperf.score`).

    Raises:
        ReportError: no rate, or a time below 0.
    """
    for name, value in (("evaluation", evaluation_s), ("start-up", startup_s)):
        if not value >= 0:
            raise ReportError(f"the time of {name} must be 0 or more, not {value:g}")
    if samples is None:
        return None
    return _known(_seconds(samples, rate, evaluation_s + startup_s))


@bounded
def _share(baseline: float, samples: float) -> float:
    return above(baseline, "a number of samples") / above(samples, "a number of samples")


@bounded
def _seconds(samples: float, rate: float, beside: float) -> float:
    return above(samples, "a number of samples") / above(rate, "a rate") + beside


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def score(times: Sequence[float | None], factor: float = 1.0) -> float:
    """Return the olympic mean of the runs' times, times the factor of `scaling.json`.

    The best and the worst run are dropped; of 40 runs four of each. Three or four runs, which the
    largest benchmarks require, are all averaged. A failed run (None) has an infinite time: one is
    dropped as the worst; more make the score infinite.

    Raises:
        ReportError: fewer than three runs, or an invalid time.
    """
    if len(times) < LEAST_RUNS:
        raise ReportError(
            f"{len(times)} runs make no MLPerf score; it takes {LEAST_RUNS} or more (5 or 10)"
        )
    wrong = [time for time in times if time is not None and not LEAST <= time <= MOST]
    if wrong:
        raise ReportError(f"{wrong[0]} is no time to train; it must be a number above 0")
    ordered = sorted(math.inf if time is None else time for time in times)
    dropped = max(1, len(ordered) // 10) if len(ordered) >= _OLYMPIC else 0
    kept = ordered[dropped : len(ordered) - dropped]
    return math.fsum(kept) / len(kept) * factor
