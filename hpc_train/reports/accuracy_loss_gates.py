"""Plain rows of points and runs -> verdicts on accuracy and loss relative to the baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import inf
from statistics import fmean, median
from typing import Any, NamedTuple

from hpc_train.model.quality_flag import LOSS_LOST
from hpc_train.model.report import GateResult
from hpc_train.model.study import Gates
from hpc_train.reports.gate_table_and_sentences import key_of
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import names

OK = "COMPLETED"
# A collapse fails the check even without a requested limit.
ACCURACY, LOSS = 0.05, 1.0
# A doubling of a loss near 0 is not significant.
LEAST_RISE = 0.1
_ROUNDING = 1e-9


class _QualityInput(NamedTuple):
    """The ok runs of a point, those of its baseline, and the name of the point.

    `others`: for the baseline itself, the ok runs of the other points of its series.
    """

    where: str
    own: Sequence[Row]
    base: Sequence[Row]
    others: Sequence[Row] = ()


def quality(gates: Gates, points: Sequence[Row], runs: Sequence[Row]) -> Iterator[GateResult]:
    """Compare the worst run of each point with the mean of the baseline's runs.

    Values are compared, not intervals: a collapse of one of several runs counts, and one repetition
    has no interval. The baseline's own runs are also compared with the other points.
    """
    if not any(map(_has_quality, runs)):
        return
    for compared in _pairs(points, runs):
        for found in (_accuracy(compared, gates.accuracy), _loss(compared, gates.loss)):
            if found is not None:
                yield found


def _has_quality(run: Row) -> bool:
    known = run["accuracy"] is not None or run["loss"] is not None
    return known or LOSS_LOST in run["flags"]


def _pairs(points: Sequence[Row], runs: Sequence[Row]) -> Iterator[_QualityInput]:
    done: dict[tuple[Any, ...], list[Row]] = {}
    of_series: dict[str, list[Row]] = defaultdict(list)
    for run in runs:
        if run["state"] == OK:
            done.setdefault(key_of(run), []).append(run)
            of_series[run["series"]].append(run)
    first: dict[str, Row] = {}
    for row in points:
        if row["is_baseline"]:
            first.setdefault(row["series"], row)
    name, common = names(points), next(iter(first.values()), None)
    for row in points:
        base = first.get(row["series"], common)
        known = done.get(key_of(base), []) if base else []
        others = []
        if base and key_of(base) == key_of(row):
            others = [run for run in of_series[row["series"]] if key_of(run) != key_of(row)]
        yield _QualityInput(name(row), done.get(key_of(row), []), known, others)


def _accuracy(compared: _QualityInput, asked: float | None) -> GateResult | None:
    limit = ACCURACY if asked is None else asked
    base = [run["accuracy"] for run in compared.base if run["accuracy"] is not None]
    known = [run for run in compared.own if run["accuracy"] is not None]
    if not base or not compared.own:
        return None
    if not known:
        return _undecided("accuracy", compared, limit)
    worst = min(known, key=lambda run: float(run["accuracy"]))
    others = [run["accuracy"] for run in compared.others if run["accuracy"] is not None]
    mean, other = fmean(base), median(others) if others else -inf
    where = "at the baseline" if mean >= other else "at the other points"
    fall = max(mean, other) - worst["accuracy"]
    met = fall <= limit + _ROUNDING
    return GateResult(
        gate="accuracy",
        where=compared.where,
        outcome="met" if met else "not met",
        reason=f"accuracy {worst['accuracy']:.4g} of {_named(worst, compared)}, {100 * fall:.2f} "
        f"points below {max(mean, other):.4g} {where}; allowed: {100 * limit:g}",
        value=worst["accuracy"],
        limit=limit,
    )


def _loss(compared: _QualityInput, asked: float | None) -> GateResult | None:
    limit = LOSS if asked is None else asked
    lost = [run for run in compared.own if LOSS_LOST in run["flags"]]
    if lost:
        reason = f"the loss of {_named(lost[0], compared)} ended as NaN or infinite"
        return GateResult(gate="loss", where=compared.where, outcome="not met", reason=reason)
    base = [run for run in compared.base if run["loss"] is not None]
    known = [run for run in compared.own if run["loss"] is not None]
    if not base or not compared.own:
        return None
    known = [run for run in known if not _processed_fewer_samples(run, base)]
    if not known:
        return _undecided("loss", compared, limit)
    worst, mean = max(known, key=lambda run: float(run["loss"])), fmean(r["loss"] for r in base)
    others = [
        run["loss"]
        for run in compared.others
        if run["loss"] is not None and not _processed_fewer_samples(base[0], [run])
    ]
    where = "at the baseline"
    if others and median(others) < mean:
        mean, where = median(others), "at the other points"
    allowed = max(limit * abs(mean), min(limit, 1) * LEAST_RISE)
    met = worst["loss"] - mean <= allowed + _ROUNDING * abs(mean)
    return GateResult(
        gate="loss",
        where=compared.where,
        outcome="met" if met else "not met",
        reason=f"loss {worst['loss']:.4g} of {_named(worst, compared)}, {mean:.4g} {where}; "
        f"allowed is {mean + allowed:.4g}",
        value=worst["loss"],
        limit=limit,
    )


def _processed_fewer_samples(run: Row, base: Sequence[Row]) -> bool:
    """Whether a run processed fewer samples than the baseline: a higher loss is expected."""
    seen = [row["samples_seen"] for row in base if row["samples_seen"] is not None]
    own = run["samples_seen"]
    return bool(seen) and own is not None and own < 0.99 * fmean(seen)


def _undecided(gate: str, compared: _QualityInput, limit: float) -> GateResult:
    reason = f"no {gate} to compare with the baseline's"
    return GateResult(
        gate=gate, where=compared.where, outcome="not decided", reason=reason, limit=limit
    )


def _named(run: Row, compared: _QualityInput) -> str:
    single = " (n=1)" if len(compared.own) == 1 else ""
    return f"{run['run_id']}{single}"
