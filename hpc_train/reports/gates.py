"""Gates and plain rows -> verdicts, and these in the report, for `--check` and as JUnit XML."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean, median
from types import MappingProxyType
from xml.etree import ElementTree as Xml

import msgspec

from hpc_train.jobs.study import ALONE, Gates, Regression
from hpc_train.reports.report import (
    CAVEATS,
    MEANING,
    SIZE,
    GateOutcome,
    GateResult,
    Report,
    ReportTable,
    Row,
    counted,
    first_of,
    grouped,
    implausible_ratios,
    names,
    one_line,
    point_of,
    significant,
    table_of,
    words_of,
)
from hpc_train.runs.expected_runs import CONTRADICTED, EXCLUDED
from hpc_train.scaling.measurements import IMPLAUSIBLE, LOSS_LOST, FlagCode

# 2 x 0.75 may differ from 1.5 by rounding.
_ROUNDING = 1e-9
WHOLE, REFERENCE = "the study", "reference of the regression gate"
NOTHING = "not decided at any point"
GATES = tuple(name for name in Gates.__struct_fields__ if name != "rule")
OF_RUN = (
    "run_id",
    "state",
    "problem",
    "flags",
    "accuracy",
    "loss",
    "samples_seen",
    "series",
    *SIZE,
)
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
_HEADINGS = ("gate", "limit", "met", "not met at", "not decided at")
_DOUBTS = {"accuracy": "the accuracy fell", "loss": "the loss rose or is not finite"}


def gated(report: Report, found: Sequence[GateResult], others: Sequence[GateResult] = ()) -> Report:
    """Return the report with the verdicts: a table, caveats, and in `checks` those not met.

    What `others` say of the reference is a caveat whichever gates are on.
    """
    table, words = _table(found), checked_gates(found)
    caveats = [*_caveats(found, others)]
    if any(verdict.outcome == "error" for verdict in found):
        caveats.append(f"{CAVEATS}not every gate could be read. {words}")
    return msgspec.structs.replace(
        report,
        summary=(*report.summary, *caveats),
        tables=(*report.tables, table),
        checks=(*report.checks, *(sentence(v) for v in found if v.outcome in _FAILED)),
        notes=(*report.notes, *([words] if table.rows else [])),
    )


def verdicts(
    gates: Gates,
    points: Sequence[Row],
    runs: Sequence[Row] = (),
    others: Sequence[GateResult] = (),
    busbw: Mapping[str, float] = MappingProxyType({}),
) -> tuple[GateResult, ...]:
    """Decide each requested gate at each point.

    `runs` are rows with the columns OF_RUN, `busbw` are GB/s by run; `others` are verdicts of
    `scripts_there` and `against_reference`.

    Efficiency and the speedup from half the size are compared by their value; the interval is in
    the reason. The baseline, 1 by definition, is not tested. A gate that cannot be decided at any
    point is not met, because a check without data must not pass.
    """
    found = [
        *_ratio("efficiency", gates.efficiency, points),
        *_ratio("doubling", gates.doubling, points),
        *_node_counts(gates.node_counts, points),
        *(verdict for verdict in others if verdict.gate != "plausible"),
    ]
    for run, value in busbw.items() if gates.busbw is not None else ():
        said = f"busbw {value:.4g} GB/s"
        found.append(_at_least("busbw", run, said, gates.busbw or 0.0, {"value": value}))
    found += _quality(gates, points, runs)
    if gates.plausible is not False:
        found += _plausible(points)
        found += [verdict for verdict in others if verdict.gate == "plausible"]
    if gates.missing is not False:
        found += _missing(points, runs, busbw)
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
    for gate, own in grouped(found, lambda verdict: verdict.gate).items():
        suite = Xml.SubElement(root, "testsuite", {"name": gate, **_counts(own)})
        for verdict in own:
            where = {"classname": one_line(f"{name}.{gate}"), "name": one_line(verdict.where)}
            case = Xml.SubElement(suite, "testcase", {**where, "time": "0"})
            reason, tag = one_line(verdict.reason), _TAGS.get(verdict.outcome)
            if tag == "skipped":
                Xml.SubElement(case, tag, {"message": reason})
            elif tag:
                Xml.SubElement(case, tag, {"message": reason, "type": gate}).text = reason
    Xml.indent(root)
    content: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


_TAGS = {"not met": "failure", "error": "error", "not decided": "skipped"}


def _counts(found: Sequence[GateResult]) -> dict[str, str]:
    outcomes = Counter(_TAGS.get(verdict.outcome) for verdict in found)
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: str(outcomes[tag]) for name, tag in names.items()}
    return {"tests": str(len(found)), **counts, "time": "0"}


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


def _at_least(
    gate: str, where: str, said: str, limit: float, numbers: Mapping[str, float | None]
) -> GateResult:
    """Return whether a value, which `said` words, reaches a limit."""
    met = (numbers["value"] or 0) >= limit - _ROUNDING
    reason = f"{said} {'>=' if met else '<'} {limit:g}"
    return _result(gate, where, met, reason, limit=limit, **numbers)


def _ratio(gate: str, limit: float | None, points: Sequence[Row]) -> Iterator[GateResult]:
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
        if numbers := _numbers(row, gate, factor):
            yield _at_least(gate, name(row), f"{words} {_shown(numbers, limit)}", limit, numbers)
        else:
            reason = f"no {words}: {row['not_ok'] or row['note'] or 'not known'}"
            yield _result(gate, name(row), "not decided", reason, limit=limit)


def _node_counts(limit: int | None, points: Sequence[Row]) -> Iterator[GateResult]:
    if limit is None:
        return
    for series, own in grouped(points, lambda row: str(row["series"])).items():
        counts = sorted({row["nodes"] for row in own if row["n_ok"] and row["nodes"]})
        said = (
            f"{counted(len(counts), 'node count')} ({first_of(map(str, counts)) or 'none known'})"
        )
        where = WHOLE if series == ALONE else series
        yield _at_least("node_counts", where, said, limit, {"value": len(counts)})


def scripts_there(runs: int, there: int) -> GateResult:
    """Return whether each of so many runs of hpctrain has its job script."""
    none = "no job script: the input consists of logs"
    reason = f"scripts of {there} of {runs} runs" if runs else none
    return _result("script", WHOLE, 0 < runs == there, reason)


def unreadable(why: str) -> GateResult:
    """Return the verdict on a reference that cannot be read."""
    return _result("regression", REFERENCE, "error", why)


def against_reference(
    gate: Regression, changes: Sequence[Row], implausible: Iterable[str] = ()
) -> Iterator[GateResult]:
    """Yield the verdicts on the rows of a comparison with the reference of the regression gate.

    A regression: the interval of new/old, or its value, is below 1 - tolerance. Not plausible are
    the lines `implausible` on the reference, and ratios that are too large for a change.
    """
    limit, old, name = 1 - gate.tolerance, gate.against, names(changes)
    for line in implausible:
        yield _result("plausible", f"reference {old}", "not met", line)
    for row, ratio in implausible_ratios(changes):
        reason = f"{MEANING[FlagCode.UNIT]}: {significant(ratio)} times the speed of {old}"
        yield _result("plausible", name(row), "not met", reason)
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


def _caveats(found: Sequence[GateResult], reference: Sequence[GateResult]) -> Iterator[str]:
    """Yield a caveat for what is implausible of the reference, and each gate with a doubt."""
    if wrong := [f"{one.where}: {one.reason}" for one in reference if one.gate == "plausible"]:
        yield f"{CAVEATS}{first_of(wrong, '; ')}."
    for gate, words in _DOUBTS.items():
        own = [v for v in found if v.gate == gate and v.outcome in _FAILED]
        if own:
            yield f"{CAVEATS}{words}: {first_of((f'{v.where} ({v.reason})' for v in own), '; ')}."


def _missing(
    points: Sequence[Row], every: Sequence[Row], busbw: Collection[str]
) -> Iterator[GateResult]:
    """Fail at points without an ok run, unless all their runs are benchmarks with a bandwidth."""
    runs = grouped((run for run in every if run["state"] != EXCLUDED), point_of)
    name = names(points)
    for row in points:
        own = runs.get(point_of(row), [])
        measured = len(own) if all(_is_benchmark(run, busbw) for run in own) else 0
        reason = f"{row['n_ok']} ok" if row["n_ok"] else row["not_ok"] or "no run"
        reason = f"{measured} with a bandwidth" if measured else reason
        yield _result("missing", name(row), bool(row["n_ok"] or measured), reason)


def _is_benchmark(run: Row, measured: Collection[str]) -> bool:
    """Whether a run succeeded and has a bandwidth, and its log does not contradict its size."""
    own = run["state"] == "UNPARSED" and run["run_id"] in measured
    return own and not str(run["problem"]).startswith(CONTRADICTED)


def _quality(gates: Gates, points: Sequence[Row], runs: Sequence[Row]) -> Iterator[GateResult]:
    """Compare the worst run of each point with the mean of the baseline's runs.

    Values are compared, not intervals: a collapse of one of several runs counts, and one repetition
    has no interval. The baseline's own runs are also compared with the other points.
    """
    done = grouped((run for run in runs if run["state"] == _OK), point_of)
    first = {row["series"]: row for row in reversed(points) if row["is_baseline"]}
    common, name = next((row for row in points if row["is_baseline"]), None), names(points)
    for row in points:
        base, others = first.get(row["series"], common), list[Row]()
        key, first_key = point_of(row), point_of(base) if base else ()
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
    own, loss, sign = sides[0], gate == "loss", -1 if gate == "loss" else 1
    limit, single = _LIMITS[gate] if asked is None else asked, " (n=1)" if len(own) == 1 else ""
    if lost := [run["run_id"] for run in own if loss and LOSS_LOST in run["flags"]]:
        reason = f"the loss of {lost[0]}{single} ended as NaN or infinite"
        yield _result(gate, where, "not met", reason)
        return
    known, base, others = ([r for r in runs if r[gate] is not None] for runs in sides)
    if not base or not own:
        return
    if loss:
        known = [run for run in known if not _saw_fewer_samples(run, base)]
        others = [run for run in others if not _saw_fewer_samples(base[0], [run])]
    if not known:
        reason = f"no {gate} to compare with the baseline's"
        yield _result(gate, where, "not decided", reason, limit=limit)
        return
    worst = min(known, key=lambda run: float(sign * run[gate]))
    value, mean = worst[gate], fmean(run[gate] for run in base)
    rest = median(run[gate] for run in others) if others else mean
    best = max(mean, rest, key=lambda one: sign * one)
    at = f"{best:.4g} {'at the baseline' if best == mean else 'at the other points'}"
    allowed, worse = limit, sign * (best - value)
    change = f"{100 * worse:.2f} points below {at}; allowed: {100 * limit:g}"
    if loss:
        allowed = max(limit * abs(best), min(limit, 1) * LEAST_RISE)
        change = f"{at}; allowed is {best + allowed:.4g}"
    met = worse <= allowed + _ROUNDING * max(1, abs(best))
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
    for gate, own in grouped(found, lambda verdict: verdict.gate).items():
        not_met, open_ = (
            first_of(dict.fromkeys(v.where for v in own if v.outcome in outcomes))
            for outcomes in (_FAILED, ("not decided",))
        )
        limit = "" if own[0].limit is None else f"{own[0].limit:g}"
        met = f"{sum(v.outcome == 'met' for v in own)} of {len(own)}"
        rows.append(dict(zip(_HEADINGS, (gate, limit, met, not_met, open_), strict=True)))
    if all(verdict.gate in _ABSENT and verdict.outcome == "met" for verdict in found):
        rows = []
    columns = words_of(dict(zip(_HEADINGS, _HEADINGS, strict=True)), _HEADINGS[3:])
    records = tuple(msgspec.structs.asdict(verdict) for verdict in found)
    return table_of("Gates", "gates", columns, rows, records)
