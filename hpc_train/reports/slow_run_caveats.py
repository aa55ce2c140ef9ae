"""SlowRuns -> the caveat of a study whose noise is skewed towards slow runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from hpc_train.model.report import Report
from hpc_train.reports.caveats import NAMED
from hpc_train.reports.plain_rows import plain_rows
from hpc_train.reports.point_and_series_names import counted, names

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.tables.slow_runs import SlowRuns

_LISTED = 3
ENOUGH = 20
_PERCENT = 1.1


def with_slow_runs(report: Report, found: Sequence[SlowRuns], points: pd.DataFrame) -> Report:
    """Put a caveat that names slow runs before the summary of a report; `points` are its points."""
    if not found:
        return report
    rows, slow = plain_rows(points), sum(len(one.names) for one in found)
    name = names(rows)
    shown = "; ".join(f"{name(rows[one.point])}: {_which(one)}" for one in found[:NAMED])
    more = f" and {counted(len(found) - NAMED, 'more size')}" if len(found) > NAMED else ""
    line = (
        f"Caveats: {counted(slow, 'slow run')}, more than noise explains (skewness, p < 0.025): "
        f"{shown}{more}. Among few runs of a size there may be none by chance; its interval then "
        f"does not include them: find the cause, or repeat each size {ENOUGH} times."
    )
    return msgspec.structs.replace(report, summary=(line, *report.summary))


def _which(one: SlowRuns) -> str:
    listed = ", ".join(one.names[:_LISTED]) + " …" * (len(one.names) > _LISTED)
    took = f"{len(one.names)} of {one.runs} runs took {_longer(one.times)}"
    return f"{took} ({listed})"


def _longer(times: float) -> str:
    """Return `2.98 times as long`; below 1.1, `4 % longer`, because 1.04 times reads as equal."""
    return (
        f"{times:.3g} times as long" if times >= _PERCENT else f"{100 * (times - 1):.0f} % longer"
    )
