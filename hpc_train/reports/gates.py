"""Gates and plain rows -> verdicts, and these in the report, for `--check` and as JUnit XML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean, median
from typing import Any, NamedTuple
from xml.etree import ElementTree as Xml

import msgspec

from hpc_train.jobs.study import ALONE, Gates
from hpc_train.reports.caveats import MEANING, implausible_ratios
from hpc_train.reports.report import (
    GateOutcome,
    GateResult,
    Report,
    ReportTable,
    table_of,
    words_of,
)
from hpc_train.reports.words import ABSENT, Row, first_of, names, one_line, significant
from hpc_train.runs.expected_runs import CONTRADICTED, EXCLUDED
from hpc_train.scaling.run_flags import IMPLAUSIBLE, LOSS_LOST, FlagCode

# 2 x 0.75 may differ from 1.5 by rounding.
_ROUNDING = 1e-9
WHOLE, REFERENCE = "the study", "reference of the regression gate"
NOTHING = "not decided at any point"
GATES = tuple(name for name in Gates.__struct_fields__ if name != "rule")
_SIZES = ("series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus")
OF_RUN = ("run_id", "state", "problem", "flags", "accuracy", "loss", "samples_seen", *_SIZES)
# A collapse fails the check even without a requested limit.
_LIMITS = {"accuracy": 0.03, "loss": 0.5}
# A doubling of a loss near 0 is not significant.
LEAST_RISE = 0.1
_OK, _FAILED = "COMPLETED", ("not met", "error")
# Gates with a default, which are tested unless a study switches them off.
_ABSENT = {
    "missing": "switched off",
    "plausible": "switched off",
    "accuracy": "not recorded at the baseline",
    "loss": "not recorded at the baseline",
}
# Rule of CSC: a job on twice the nodes is 1.5 times as fast; doubling efficiency times 2.
_COLUMNS = {"efficiency": ("efficiency", 1), "doubling": ("speedup from half the size", 2)}
_DOUBTS = {"accuracy": "the accuracy fell", "loss": "the loss rose or is not finite"}


class GateInputs(NamedTuple):
    """Input of gates in addition to the points.

    `scripts`: number of runs, and of runs with a script. `busbw`: GB/s by run. `runs`: rows of the
    runs, with the columns OF_RUN. `changes`: rows of a comparison with `against`, whose values
    the lines `implausible` are on. `reference_unknown`: why there are no `changes`.
    """

    scripts: tuple[int, int] = (0, 0)
    busbw: Mapping[str, float] = {}
    runs: tuple[Row, ...] = ()
    changes: tuple[Row, ...] = ()
    implausible: tuple[str, ...] = ()
    reference_unknown: str = ""


def gated(report: Report, gates: Gates, points: Sequence[Row], known: GateInputs) -> Report:
    """Return the report with the verdicts: a table, caveats, and in `checks` those not met."""
    found = verdicts(gates, points, known)
    table, words = _table(found), checked_gates(found)
    caveats = [*_caveats(gates, known, found)]
    if any(verdict.outcome == "error" for verdict in found):
        caveats.append(f"Caveats: not every gate could be read. {words}")
    return msgspec.structs.replace(
        report,
        summary=(*report.summary, *caveats),
        tables=(*report.tables, table),
        checks=(*report.checks, *(sentence(v) for v in found if v.outcome in _FAILED)),
        notes=(*report.notes, *([words] if table.rows else [])),
    )


def verdicts(gates: Gates, points: Sequence[Row], known: GateInputs) -> tuple[GateResult, ...]:
    """Decide each requested gate at each point.

    Efficiency and the speedup from half the size are compared by their value; the interval is in
    the reason. The baseline, 1 by definition, is not tested. A gate that cannot be decided at any
    point is not met, because a check without data must not pass.
    """
    found = [
        *_at_least("efficiency", gates.efficiency, points),
        *_at_least("doubling", gates.doubling, points),
        *_node_counts(gates.node_counts, points),
        *_script(gates, *known.scripts),
        *_busbw(gates.busbw, known.busbw),
        *_regressions(gates, known.changes, known.reference_unknown),
        *_quality(gates, points, known.runs),
    ]
    if gates.plausible is not False:
        found += _plausible(points)
    if gates.plausible is not False and gates.regression is not None:
        old, unit = gates.regression.against, MEANING[FlagCode.UNIT]
        wrong = [(f"reference {old}", line) for line in known.implausible]
        wrong += [(where, f"{unit}: {ratio}") for where, ratio in _ratios(old, known.changes)]
        found += [_result("plausible", where, "not met", reason) for where, reason in wrong]
    if gates.missing is not False:
        found += _missing(points, known)
    decided = {verdict.gate for verdict in found if verdict.outcome != "not decided"}
    for name in GATES:
        limit = getattr(gates, name)
        if limit is not None and limit is not False and name not in decided:
            found.append(_result(name, WHOLE, "not met", f"{name} is {NOTHING}"))
    return tuple(found)


def verdicts_of(report: Report) -> tuple[GateResult, ...]:
    """Return the verdicts of a report."""
    rows = (row for table in report.tables if table.key == "gates" for row in table.records)
    return tuple(msgspec.convert(row, GateResult) for row in rows)


def sentence(verdict: GateResult) -> str:
    """Return `gate not met: 8 GPUs: efficiency 0.600 [0.590, 0.610] < 0.75`."""
    if verdict.gate == "missing" and verdict.outcome == "not met":
        return f"missing point: {verdict.where}: {verdict.reason}"
    return f"gate {verdict.outcome}: {verdict.where}: {verdict.reason}"


def open_checks(report: Report) -> tuple[str, ...]:
    """Return a line for each point at which a gate of the report is not decided."""
    return tuple(sentence(v) for v in verdicts_of(report) if v.outcome == "not decided")


def check_lines(report: Report) -> tuple[str, ...]:
    """Return what `--check` says: what is not met or not decided, and which gates were checked."""
    return (*report.checks, *open_checks(report), checked_gates(verdicts_of(report)))


def unreadable_gates(report: Report) -> bool:
    """Whether a gate could not be decided, as the reference of the regression is unreadable."""
    return any(verdict.outcome == "error" for verdict in verdicts_of(report))


def checked_gates(found: Sequence[GateResult]) -> str:
    """Return which gates were checked, and which were not and why."""
    empty = {v.gate for v in found if v.reason.endswith(NOTHING)}
    decided = dict.fromkeys(v.gate for v in found if v.outcome in ("met", "not met"))
    checked = [gate for gate in decided if gate not in empty]
    reasons: dict[str, list[str]] = {}
    for verdict in found:
        if verdict.outcome == "error":
            reasons.setdefault(verdict.reason, []).append(verdict.gate)
    named, seen = {*checked, *chain(*reasons.values())}, {verdict.gate for verdict in found}
    for gate in GATES:
        if gate not in named:
            why = NOTHING if gate in seen else _ABSENT.get(gate, "no limit set")
            reasons.setdefault(why, []).append(gate)
    others = "; ".join(f"{', '.join(gates)} ({reason})" for reason, gates in reasons.items())
    return f"Gates checked: {', '.join(checked) or 'none'}. Not checked: {others or 'none'}."


def without_result(report: Report) -> bool:
    """Whether a run has neither a result nor a bandwidth that a gate decided on."""
    measured = {verdict.where for verdict in verdicts_of(report) if verdict.gate == "busbw"}
    return any(
        row["state"] not in (_OK, EXCLUDED) and not _is_benchmark(row, measured)
        for row in report.run_rows
    )


def junit(name: str, found: Sequence[GateResult]) -> bytes:
    """Return XML with one test suite per gate, in it one test case per point."""
    root = Xml.Element("testsuites", {"name": one_line(name), **_counts(found)})
    tags = {"not met": "failure", "error": "error", "not decided": "skipped"}
    for gate in dict.fromkeys(verdict.gate for verdict in found):
        own = [verdict for verdict in found if verdict.gate == gate]
        suite = Xml.SubElement(root, "testsuite", {"name": gate, **_counts(own)})
        named = one_line(f"{name}.{gate}")
        for verdict in own:
            where = {"classname": named, "name": one_line(verdict.where), "time": "0"}
            case = Xml.SubElement(suite, "testcase", where)
            if verdict.outcome in tags:
                reason = one_line(verdict.reason)
                said = Xml.SubElement(case, tags[verdict.outcome], {"message": reason})
                if verdict.outcome != "not decided":
                    said.set("type", gate)
                    said.text = reason
    Xml.indent(root)
    content: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _counts(found: Sequence[GateResult]) -> dict[str, str]:
    names = {"failures": "not met", "errors": "error", "skipped": "not decided"}
    outcomes: list[str] = [verdict.outcome for verdict in found]
    counts = {name: str(outcomes.count(outcome)) for name, outcome in names.items()}
    return {"tests": str(len(outcomes)), **counts, "time": "0"}


def _result(
    gate: str, where: str, outcome: GateOutcome | bool, reason: str, **numbers: float | None
) -> GateResult:
    """Return a verdict; True is met."""
    if isinstance(outcome, bool):
        outcome = "met" if outcome else "not met"
    return GateResult(gate=gate, where=where, outcome=outcome, reason=reason, **numbers)


def _numbers(row: Row, name: str, factor: float = 1) -> dict[str, float | None] | None:
    """Return a value with the limits of its interval, if there is one; None without a value."""
    ends = {"value": "", "low": "_low", "high": "_high"}
    found = {key: row.get(f"{name}{end}") for key, end in ends.items()}
    if found["value"] is None:
        return None
    return {key: value if value is None else factor * value for key, value in found.items()}


def _shown(numbers: Mapping[str, float | None], limit: float | None = None) -> str:
    """Return `0.600 [0.590, 0.610]`, with digits that tell it from a limit."""
    value, *ends = (number for number in numbers.values() if number is not None)
    same = (n for n in range(3, 9) if limit is None or round(value, n) != round(limit, n))
    digits = next(same, 3)
    interval = ", ".join(f"{end:.{digits}f}" for end in ends)
    return f"{value:.{digits}f} [{interval}]" if len(ends) > 1 else f"{value:.{digits}f}"


def _at_least(gate: str, limit: float | None, points: Sequence[Row]) -> Iterator[GateResult]:
    """Decide an efficiency at all points but baselines, or doubling where there is half a size."""
    if limit is None:
        return
    (words, factor), name, units = _COLUMNS[gate], names(points), ("gpus", "ranks")
    double = {(row["series"], u, 2 * row[u]) for row in points for u in units if row[u]}
    for row in points:
        unit = units[not row["gpus"]]
        whole = (row["series"], unit, row[unit] or 0) in double
        if not (whole if gate == "doubling" else not row["is_baseline"]):
            continue
        numbers = _numbers(row, gate, factor)
        if numbers is None or (value := numbers["value"]) is None:
            reason = f"no {words}: {row['not_ok'] or row['note'] or 'not known'}"
            yield _result(gate, name(row), "not decided", reason, limit=limit)
            continue
        met = value >= limit - _ROUNDING
        reason = f"{words} {_shown(numbers, limit)} {'>=' if met else '<'} {limit:g}"
        yield _result(gate, name(row), met, reason, limit=limit, **numbers)


def _node_counts(limit: int | None, points: Sequence[Row]) -> Iterator[GateResult]:
    if limit is None:
        return
    for series in dict.fromkeys(row["series"] for row in points):
        own = [row for row in points if row["series"] == series and row["n_ok"]]
        counts = sorted({row["nodes"] for row in own if row["nodes"]})
        met = len(counts) >= limit
        shown = ", ".join(map(str, counts)) or "none known"
        plural = "" if len(counts) == 1 else "s"
        reason = f"{len(counts)} node count{plural} ({shown}) {'>=' if met else '<'} {limit}"
        where = WHOLE if series == ALONE else str(series)
        yield _result("node_counts", where, met, reason, value=len(counts), limit=limit)


def _script(gates: Gates, runs: int, there: int) -> Iterator[GateResult]:
    if gates.script:
        none = "no job script: the input consists of logs"
        reason = f"scripts of {there} of {runs} runs" if runs else none
        yield _result("script", WHOLE, 0 < runs == there, reason)


def _busbw(limit: float | None, measured: Mapping[str, float]) -> Iterator[GateResult]:
    if limit is not None:
        for run, value in measured.items():
            met = value >= limit - _ROUNDING
            reason = f"busbw {value:.4g} GB/s {'>=' if met else '<'} {limit:g}"
            yield _result("busbw", run, met, reason, value=value, limit=limit)


def _regressions(gates: Gates, changes: Sequence[Row], unknown: str) -> Iterator[GateResult]:
    """Yield regressions: the interval of new/old, or its value, is below 1 - tolerance."""
    if gates.regression is None:
        return
    if unknown:
        yield _result("regression", REFERENCE, "error", unknown)
        return
    limit, old, name = 1 - gates.regression.tolerance, gates.regression.against, names(changes)
    for row in changes:
        numbers = _numbers(row, "ratio")
        if numbers is None:
            why = row["why"].replace("A: ", f"{old}: ").replace("B: ", "")
            why = {"not in A": f"not in {old}", "not in B": f"only in {old}"}.get(why, why)
            reason = f"no ratio to {old}: {why}"
            yield _result("regression", name(row), "not decided", reason, limit=limit)
            continue
        decisive, single = numbers["high"], ""
        if numbers["low"] is None:
            decisive = numbers["value"]
            single = ", n=1" if 1 in (row["n_a"], row["n_b"]) else ", no spread between runs"
        met = decisive is None or decisive >= limit - _ROUNDING
        if lost := quality_lost(row):
            yield _result("regression", name(row), False, f"{lost}, compared with {old}")
        reason = f"{_shown(numbers)} times the speed of {old}{single}; "
        reason += f"{'not ' if met else ''}below {limit:g}"
        yield _result("regression", name(row), met, reason, limit=limit, **numbers)


def _plausible(points: Sequence[Row]) -> Iterator[GateResult]:
    """Fail at points with a value that cannot be right or does not belong to its series."""
    name = names(points)
    for row in points:
        wrong = [flag for flag in row.get("flags") or () if flag.code in IMPLAUSIBLE]
        if row["n_ok"] or wrong:
            reasons = "; ".join(f"{MEANING[flag.code]}: {flag.detail}" for flag in wrong)
            yield _result("plausible", name(row), not wrong, reasons or "no implausible value")


def _ratios(old: str, changes: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield the ratios to the regression gate's reference that are too large for a change."""
    name = names(changes)
    for row, ratio in implausible_ratios(changes):
        yield name(row), f"{significant(ratio)} times the speed of {old}"


def _caveats(gates: Gates, known: GateInputs, found: Sequence[GateResult]) -> Iterator[str]:
    """Yield a caveat for what is implausible of the reference, and each gate with a doubt."""
    doubts = {}
    if gates.regression is not None:
        old = gates.regression.against
        yield from (f"Caveats: reference {old}: {line}." for line in known.implausible)
        ratios = _ratios(old, known.changes)
        doubts[MEANING[FlagCode.UNIT]] = [f"{where} ({ratio})" for where, ratio in ratios]
    for gate, words in _DOUBTS.items():
        own = (v for v in found if v.gate == gate and v.outcome in _FAILED)
        doubts[words] = [f"{v.where} ({v.reason})" for v in own]
    yield from (f"Caveats: {words}: {first_of(own, '; ')}." for words, own in doubts.items() if own)


def _missing(points: Sequence[Row], known: GateInputs) -> Iterator[GateResult]:
    """Fail at points without an ok run, unless all their runs are benchmarks with a bandwidth."""
    benchmarks: dict[Any, list[bool]] = defaultdict(list)
    for run in known.runs:
        if run["state"] != EXCLUDED:
            benchmarks[_key(run)].append(_is_benchmark(run, known.busbw))
    name = names(points)
    for row in points:
        own = benchmarks.get(_key(row), [])
        measured = len(own) if all(own) else 0
        reason = f"{row['n_ok']} ok" if row["n_ok"] else row["not_ok"] or "no run"
        reason = f"{measured} with a bandwidth" if measured else reason
        yield _result("missing", name(row), bool(row["n_ok"] or measured), reason)


def _key(row: Row) -> tuple[Any, ...]:
    """Return the key of a point, or of the point of a run."""
    return tuple(row.get(name) for name in _SIZES)


def _is_benchmark(run: Row, measured: Collection[str]) -> bool:
    """Whether a run succeeded and has a bandwidth, and its log does not contradict its size."""
    own = run["state"] == "UNPARSED" and run["run_id"] in measured
    return own and not str(run["problem"]).startswith(CONTRADICTED)


def _quality(gates: Gates, points: Sequence[Row], runs: Sequence[Row]) -> Iterator[GateResult]:
    """Compare the worst run of each point with the mean of the baseline's runs.

    Values are compared, not intervals: a collapse of one of several runs counts, and one repetition
    has no interval. The baseline's own runs are also compared with the other points.
    """
    done: dict[Any, list[Row]] = defaultdict(list)
    for run in runs:
        if run["state"] == _OK:
            done[_key(run)].append(run)
    first: dict[str, Row] = {}
    for row in points:
        if row["is_baseline"]:
            first.setdefault(row["series"], row)
    name, common = names(points), next(iter(first.values()), None)
    for row in points:
        base, others = first.get(row["series"], common), []
        key, first_key = _key(row), _key(base) if base else ()
        if key == first_key:
            others = [*chain(*(runs for of, runs in done.items() if of[0] == key[0] and of != key))]
        sides = (done.get(key, []), done.get(first_key, []), others)
        yield from _worst("accuracy", gates.accuracy, name(row), sides)
        yield from _worst("loss", gates.loss, name(row), sides)


def _worst(
    gate: str, asked: float | None, where: str, sides: Sequence[Sequence[Row]]
) -> Iterator[GateResult]:
    """Compare the worst of a point's runs with those of its baseline.

    `sides`: the ok runs of the point, of its baseline, and if it is the baseline itself, those of
    the other points of its series.
    """
    own, base, others = sides
    limit, single = _LIMITS[gate] if asked is None else asked, " (n=1)" if len(own) == 1 else ""
    for run in own if gate == "loss" else ():
        if LOSS_LOST in run["flags"]:
            reason = f"the loss of {run['run_id']}{single} ended as NaN or infinite"
            yield _result(gate, where, "not met", reason)
            return
    known, base, others = ([r for r in runs if r[gate] is not None] for runs in sides)
    if not base or not own:
        return
    if gate == "loss":
        known = [run for run in known if not _saw_fewer_samples(run, base)]
        others = [run for run in others if not _saw_fewer_samples(base[0], [run])]
    if not known:
        reason = f"no {gate} to compare with the baseline's"
        yield _result(gate, where, "not decided", reason, limit=limit)
        return
    better, worse = (max, min) if gate == "accuracy" else (min, max)
    worst = worse(known, key=lambda run: float(run[gate]))
    value, mean = worst[gate], fmean(run[gate] for run in base)
    best = better(mean, median(run[gate] for run in others) if others else mean)
    at = f"{best:.4g} {'at the baseline' if best == mean else 'at the other points'}"
    if gate == "accuracy":
        met = best - value <= limit + _ROUNDING
        change = f"{100 * (best - value):.2f} points below {at}; allowed: {100 * limit:g}"
    else:
        allowed = max(limit * abs(best), min(limit, 1) * LEAST_RISE)
        met = value - best <= allowed + _ROUNDING * abs(best)
        change = f"{at}; allowed is {best + allowed:.4g}"
    reason = f"{gate} {value:.4g} of {worst['run_id']}{single}, {change}"
    yield _result(gate, where, met, reason, value=value, limit=limit)


def quality_lost(row: Row) -> str:
    """Return how much worse the accuracy or the loss of B is at a point of a comparison, or "".

    An accuracy is worse by more than the noise of both sides explains, or by as much as a gate
    allows; a loss by as much as a gate allows.
    """
    change, noise = row["accuracy_change_pp"], row["accuracy_limit_pp"]
    allowed = 100 * _LIMITS["accuracy"] if noise is None else noise
    if change is not None and -change > allowed + _ROUNDING:
        explained = "allowed" if noise is None else "noise explains"
        return f"the accuracy is {-change:.2f} points lower ({explained} {allowed:.2f})"
    old, new = row["loss_a"], row["loss_b"]
    limit = max(_LIMITS["loss"] * abs(old or 0), _LIMITS["loss"] * LEAST_RISE)
    if old is not None and new is not None and new - old > limit:
        return f"the loss is {new:.4g} instead of {old:.4g}"
    return ""


def _saw_fewer_samples(run: Row, base: Sequence[Row]) -> bool:
    """Whether a run processed fewer samples than the baseline: a higher loss is expected."""
    seen = [row["samples_seen"] for row in base if row["samples_seen"] is not None]
    own = run["samples_seen"]
    return bool(seen) and own is not None and own < 0.99 * fmean(seen)


def _table(found: Sequence[GateResult]) -> ReportTable:
    """Return one row per gate, without met points; the records have all of them."""
    rows = []
    for gate in dict.fromkeys(verdict.gate for verdict in found):
        own = [verdict for verdict in found if verdict.gate == gate]
        limit = own[0].limit
        not_met, open_ = (
            list(dict.fromkeys(v.where for v in own if v.outcome in outcomes))
            for outcomes in (_FAILED, ("not decided",))
        )
        rows.append(
            {
                "gate": gate,
                "limit": ABSENT if limit is None else f"{limit:g}",
                "met": f"{sum(v.outcome == 'met' for v in own)} of {len(own)}",
                "not met at": first_of(not_met) or ABSENT,
                "not decided at": first_of(open_) or ABSENT,
            }
        )
    if all(verdict.gate in _ABSENT and verdict.outcome == "met" for verdict in found):
        rows = []
    keys = ("gate", "limit", "met", "not met at", "not decided at")
    columns = words_of(dict(zip(keys, keys, strict=True)), keys[3:])
    records = tuple(msgspec.structs.asdict(verdict) for verdict in found)
    return table_of("Gates", "gates", columns, rows, records)
