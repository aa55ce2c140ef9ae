"""Plain rows of points -> verdicts on implausible values; verdicts -> caveats of the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.quality_flag import IMPLAUSIBLE
from hpc_train.model.report import GateResult
from hpc_train.reports.caveats import MEANING, NAMED
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import names

_CAVEATS = {
    "accuracy": "the accuracy fell",
    "loss": "the loss rose or is not finite",
}


def plausible(points: Sequence[Row]) -> Iterator[GateResult]:
    """Fail at points with a value that cannot be right or does not belong to its series."""
    name = names(points)
    for row in points:
        if not row["n_ok"]:
            continue
        wrong = [flag for flag in row.get("flags") or () if flag.code in IMPLAUSIBLE]
        reasons = [f"{MEANING[flag.code]}: {flag.detail}" for flag in wrong]
        yield GateResult(
            gate="plausible",
            where=name(row),
            outcome="not met" if wrong else "met",
            reason="; ".join(reasons) or "no implausible value",
        )


def with_verdict_caveats(summary: Sequence[str], found: Sequence[GateResult]) -> tuple[str, ...]:
    """Return the summary after a caveat for each gate that doubts the result."""
    return (*_caveats(found), *summary)


def _caveats(found: Sequence[GateResult]) -> Iterator[str]:
    for gate, words in _CAVEATS.items():
        own = [v for v in found if v.gate == gate and v.outcome in ("not met", "error")]
        if own:
            named = "; ".join(f"{v.where} ({v.reason})" for v in own[:NAMED])
            more = f" and {len(own) - NAMED} more" if len(own) > NAMED else ""
            yield f"Caveats: {words}: {named}{more}."
