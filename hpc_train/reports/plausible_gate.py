"""Plain rows of points -> verdicts on implausible values; verdicts -> caveats of the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.quality_flag import IMPLAUSIBLE, FlagCode
from hpc_train.model.report import GateResult
from hpc_train.model.study import Gates
from hpc_train.reports.caveats import MEANING, NAMED, implausible_ratios
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import names
from hpc_train.reports.value_format import significant

_CAVEATS = {
    "accuracy": "the accuracy fell",
    "loss": "the loss rose or is not finite",
}


def plausible(points: Sequence[Row]) -> Iterator[GateResult]:
    """Fail at points with a value that cannot be right or does not belong to its series."""
    name = names(points)
    for row in points:
        wrong = [flag for flag in row.get("flags") or () if flag.code in IMPLAUSIBLE]
        if not row["n_ok"] and not wrong:
            continue
        reasons = [f"{MEANING[flag.code]}: {flag.detail}" for flag in wrong]
        yield GateResult(
            gate="plausible",
            where=name(row),
            outcome="not met" if wrong else "met",
            reason="; ".join(reasons) or "no implausible value",
        )


def plausible_reference(
    gates: Gates, implausible: Sequence[str], changes: Sequence[Row]
) -> Iterator[GateResult]:
    """Fail for each implausible value of the regression gate's reference, and ratio to it.

    `implausible` are the lines of `implausible_of_side`, `changes` the rows of the comparison.
    """
    if gates.plausible is False or gates.regression is None:
        return
    old = gates.regression.against
    found = [(_reference(old), line) for line in implausible]
    unit = MEANING[FlagCode.UNIT]
    found += [(where, f"{unit}: {ratio}") for where, ratio in _ratios(old, changes)]
    for where, reason in found:
        yield GateResult(gate="plausible", where=where, outcome="not met", reason=reason)


def reference_caveats(
    old: str, implausible: Sequence[str], changes: Sequence[Row]
) -> Iterator[str]:
    """Yield a caveat for each such value of the reference `old`, and one for all such ratios."""
    yield from (f"Caveats: {_reference(old)}: {line}." for line in implausible)
    if ratios := list(_ratios(old, changes)):
        yield f"Caveats: {MEANING[FlagCode.UNIT]}: {_named(ratios)}."


def _reference(old: str) -> str:
    return f"reference {old}"


def _ratios(old: str, changes: Sequence[Row]) -> Iterator[tuple[str, str]]:
    name = names(changes)
    for row, ratio in implausible_ratios(changes):
        yield name(row), f"{significant(ratio)} times the speed of {old}"


def with_verdict_caveats(summary: Sequence[str], found: Sequence[GateResult]) -> tuple[str, ...]:
    """Return the summary with a caveat for each gate that doubts the result."""
    return (*summary, *_caveats(found))


def _caveats(found: Sequence[GateResult]) -> Iterator[str]:
    for gate, words in _CAVEATS.items():
        own = [v for v in found if v.gate == gate and v.outcome in ("not met", "error")]
        if own:
            yield f"Caveats: {words}: {_named([(v.where, v.reason) for v in own])}."


def _named(found: Sequence[tuple[str, str]]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return "; ".join(f"{where} ({reason})" for where, reason in found[:NAMED]) + more
