"""RunOrder -> the caveats of a study whose runs depend on their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from hpc_train.model.report import Report

if TYPE_CHECKING:
    from hpc_train.tables.run_order import RunOrder


def with_order_caveats(report: Report, order: RunOrder) -> Report:
    """Put the caveats of the order of the runs before the summary of a report."""
    return msgspec.structs.replace(report, summary=(*_caveats(order), *report.summary))


def _caveats(order: RunOrder) -> Iterator[str]:
    if order.drift is not None:
        yield (
            f"Caveats: the speed drifted by {100 * (order.drift - 1):+.2g} % from the first run to "
            "the last (Student's t of the trend, p < 0.025): the machine changed during the study."
        )
    if order.autocorrelation is not None:
        yield (
            "Caveats: runs that followed one another have similar deviations (autocorrelation "
            f"{order.autocorrelation:.2g}, p < 0.025): they are not independent."
        )
