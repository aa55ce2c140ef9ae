"""LogPattern: a user-defined log line, as a regular expression whose groups are metrics."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hpc_train.model.record import StatedScope
from hpc_train.model.value import Value

PLACES = frozenset({"step", "rank"})
"""Groups that are no metrics, but say where the metrics belong."""
MOST_TOUCHING = 3
"""So many repeats that match the same characters may touch one another, a search among them."""


class LogPattern(Value, frozen=True, kw_only=True):
    """A pattern of log lines, and the meaning of its groups."""

    regex: Annotated[
        str,
        Meta(min_length=1, max_length=2000, description="Python regex; named groups are metrics."),
    ]
    scope: Annotated[
        StatedScope, Meta(description="Scope of the values: the job, one GPU or one rank.")
    ]
    literal: Annotated[
        str, Meta(description="Text in every such line; default: the longest in the regex.")
    ] = ""
    units: Annotated[
        dict[str, str], Meta(description="New metric -> its unit, `W` for power.")
    ] = {}
    scale: Annotated[
        dict[str, float],
        Meta(description="Metric -> factor to the metric's unit, 0.001 for ms."),
    ] = {}
