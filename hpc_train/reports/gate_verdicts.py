"""Gates and plain rows -> a verdict on each gate at each point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from statistics import fmean, median
from typing import Any, NamedTuple

from hpc_train.model.quality_flag import LOSS_LOST
from hpc_train.model.report import GateOutcome, GateResult
from hpc_train.model.study import ALONE, Gates
from hpc_train.reports.gate_table_and_sentences import NOTHING, benchmarked, key_of
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.plausible_gate import plausible, plausible_reference
from hpc_train.reports.point_and_series_names import names

# 2 x 0.75 may differ from 1.5 by rounding.
_ROUNDING = 1e-9
WHOLE, SITE, REFERENCE = "the study", "gates of the site", "reference of the regression gate"
OF_RUN = (
    "run_id", "state", "problem", "flags", "accuracy", "loss", "samples_seen", "series", "nodes",
    "gpus_per_node", "tasks_per_node", "ranks", "gpus",
)  # fmt: skip


class GateInputs(NamedTuple):
    """Input of gates in addition to the points.

    `scripts`: number of runs, and of runs with a script. `busbw`: GB/s by run. `runs`: rows of the
    runs, with the columns OF_RUN. `changes`: rows of a comparison with `against`, whose values
    the lines `implausible` are on. `site_unknown`: why the site's gates are not known,
    `reference_unknown`: why there are no `changes`.
    """

    scripts: tuple[int, int] = (0, 0)
    busbw: Mapping[str, float] = {}
    runs: tuple[Row, ...] = ()
    changes: tuple[Row, ...] = ()
    implausible: tuple[str, ...] = ()
    site_unknown: str = ""
    reference_unknown: str = ""


class GateValue(NamedTuple):
    """A value with the limits of its interval, if it has one."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """Write `0.600 [0.590, 0.610]`."""
        return self.beside(None)

    def beside(self, limit: float | None) -> str:
        """Format with enough digits to distinguish it from a limit: not `0.750 < 0.75`."""
        same = (n for n in range(3, 9) if limit is None or round(self.value, n) != round(limit, n))
        digits = next(same, 3)
        value = f"{self.value:.{digits}f}"
        if self.low is None or self.high is None:
            return value
        return f"{value} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


class Least(NamedTuple):
    """A gate on a column of the points: the column's value times `factor` must reach `limit`."""

    gate: str
    words: str
    limit: float
    factor: float = 1


def verdicts(gates: Gates, points: Sequence[Row], known: GateInputs) -> tuple[GateResult, ...]:
    """Decide each requested gate at each point.

    Efficiency and the speedup from half the size are compared by their value; the interval is in
    the reason. The baseline, 1 by definition, is not tested. A gate that cannot be decided at any
    point is not met, because a check without data must not pass.
    """
    found = [
        *_efficiency(gates.efficiency, points),
        *_doubling(gates.doubling, points),
        *_node_counts(gates.node_counts, points),
        *(_script(known.scripts) if gates.script else ()),
        *_busbw(gates.busbw, known.busbw),
        *_regressions(gates, known.changes, known.reference_unknown),
        *quality(gates, points, known.runs),
        *_site(known.site_unknown),
        *(plausible(points) if gates.plausible is not False else ()),
        *plausible_reference(gates, known.implausible, known.changes),
        *(_missing(points, known) if gates.missing is not False else ()),
    ]
    asked = [
        name
        for name in Gates.__struct_fields__
        if name != "rule" and getattr(gates, name) is not None and getattr(gates, name) is not False
    ]
    decided = {verdict.gate for verdict in found if verdict.outcome != "not decided"}
    nothing = [
        GateResult(gate=name, where=WHOLE, outcome="not met", reason=f"{name} is {NOTHING}")
        for name in asked
        if name not in decided
    ]
    return (*found, *nothing)


def _missing(points: Sequence[Row], known: GateInputs) -> Iterator[GateResult]:
    name, benchmarks = names(points), benchmarked(known.runs, known.busbw)
    for row in points:
        reason = f"{row['n_ok']} ok" if row["n_ok"] else row["not_ok"] or "no run"
        measured = benchmarks.get(key_of(row), 0)
        if measured:
            reason = f"{measured} with a bandwidth"
        outcome: GateOutcome = "met" if row["n_ok"] or measured else "not met"
        where = name(row)
        yield GateResult(gate="missing", where=where, outcome=outcome, reason=reason)


def _efficiency(limit: float | None, points: Sequence[Row]) -> Iterator[GateResult]:
    if limit is not None:
        least, name = Least("efficiency", "efficiency", limit), names(points)
        yield from (_decided(least, row, name) for row in points if not row["is_baseline"])


def _doubling(limit: float | None, points: Sequence[Row]) -> Iterator[GateResult]:
    """Rule of CSC: a job on twice the nodes is 1.5 times as fast; doubling efficiency times 2."""
    if limit is not None:
        least = Least("doubling", "speedup from half the size", limit, 2)
        name, doubles = names(points), _doubles(points)
        yield from (_decided(least, row, name) for row in points if _key(row) in doubles)


def _key(row: Row) -> tuple[str, str, float]:
    unit = "gpus" if row["gpus"] else "ranks"
    return (row["series"], unit, row[unit] or 0)


def _doubles(points: Sequence[Row]) -> frozenset[tuple[str, str, float]]:
    """Return the keys of points with a point of half the size in the same series."""
    units = ("gpus", "ranks")
    return frozenset((row["series"], u, 2 * row[u]) for row in points for u in units if row[u])


def _number(row: Row, name: str, factor: float = 1) -> GateValue | None:
    parts = [row.get(f"{name}{end}") for end in ("", "_low", "_high")]
    value, low, high = (None if part is None else factor * part for part in parts)
    return None if value is None else GateValue(value, low, high)


def _decided(least: Least, row: Row, name: Callable[[Row], str]) -> GateResult:
    gate, words, limit, factor = least
    where, number = name(row), _number(row, gate, factor)
    if number is None:
        reason = f"no {words}: {row['not_ok'] or row['note'] or 'not known'}"
        return GateResult(gate=gate, where=where, outcome="not decided", reason=reason, limit=limit)
    met = number.value >= limit - _ROUNDING
    return GateResult(
        gate=gate,
        where=where,
        outcome="met" if met else "not met",
        reason=f"{words} {number.beside(limit)} {'>=' if met else '<'} {limit:g}",
        limit=limit,
        **number._asdict(),
    )


def _node_counts(limit: int | None, points: Sequence[Row]) -> Iterator[GateResult]:
    if limit is None:
        return
    for series in dict.fromkeys(row["series"] for row in points):
        own = [row for row in points if row["series"] == series and row["n_ok"]]
        counts = sorted({row["nodes"] for row in own if row["nodes"]})
        met = len(counts) >= limit
        shown = ", ".join(map(str, counts)) or "none known"
        plural = "" if len(counts) == 1 else "s"
        yield GateResult(
            gate="node_counts",
            where=WHOLE if series == ALONE else str(series),
            outcome="met" if met else "not met",
            reason=f"{len(counts)} node count{plural} ({shown}) {'>=' if met else '<'} {limit}",
            value=len(counts),
            limit=limit,
        )


def _script(scripts: tuple[int, int]) -> Iterator[GateResult]:
    runs, there = scripts
    met = 0 < runs == there
    reason = (
        f"scripts of {there} of {runs} runs"
        if runs
        else "no job script: the input consists of logs"
    )
    yield GateResult(gate="script", where=WHOLE, outcome="met" if met else "not met", reason=reason)


def _site(unknown: str) -> Iterator[GateResult]:
    """Report that the gates of the site cannot be read."""
    if unknown:
        yield GateResult(gate="site", where=SITE, outcome="error", reason=unknown)


def _busbw(limit: float | None, measured: Mapping[str, float]) -> Iterator[GateResult]:
    for run, value in measured.items() if limit is not None else ():
        met = value >= (limit or 0) - _ROUNDING
        yield GateResult(
            gate="busbw",
            where=run,
            outcome="met" if met else "not met",
            reason=f"busbw {value:.4g} GB/s {'>=' if met else '<'} {limit:g}",
            value=value,
            limit=limit,
        )


def _regressions(gates: Gates, changes: Sequence[Row], unknown: str) -> Iterator[GateResult]:
    """Yield regressions: the interval of new/old, or its value, is below 1 - tolerance."""
    if gates.regression is None:
        return
    if unknown:
        yield GateResult(gate="regression", where=REFERENCE, outcome="error", reason=unknown)
        return
    limit, old = 1 - gates.regression.tolerance, gates.regression.against
    name = names(changes)
    for row in changes:
        where, number = name(row), _number(row, "ratio")
        if number is None:
            why = row["why"].replace("A: ", f"{old}: ").replace("B: ", "")
            why = {"not in A": f"not in {old}", "not in B": f"only in {old}"}.get(why, why)
            reason = f"no ratio to {old}: {why}"
            yield GateResult(
                gate="regression", where=where, outcome="not decided", reason=reason, limit=limit
            )
            continue
        decisive = number.value if number.low is None else number.high
        met = decisive is None or decisive >= limit - _ROUNDING
        single = _without_interval(row) if number.low is None else ""
        yield GateResult(
            gate="regression",
            where=where,
            outcome="met" if met else "not met",
            reason=f"{number} times the speed of {old}{single}; "
            f"{'not ' if met else ''}below {limit:g}",
            limit=limit,
            **number._asdict(),
        )


def _without_interval(row: Row) -> str:
    return ", n=1" if 1 in (row["n_a"], row["n_b"]) else ", no spread between runs"


OK = "COMPLETED"
# A collapse fails the check even without a requested limit.
ACCURACY, LOSS = 0.05, 1.0
# A doubling of a loss near 0 is not significant.
LEAST_RISE = 0.1


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
