"""TableRecords: the measurements of tables as columns, from imports to tables."""

from collections.abc import Sequence
from typing import Any, NamedTuple

# An array of numbers; numpy is imported where arrays are made.
Array = Any


class TableRecords(NamedTuple):
    """One measurement for each place of the columns; numbers are indexes of the names.

    `run` counts from 0 in the order of `runs`. Values have the unit of their metric, and neither
    step nor rank.
    """

    runs: Sequence[str]
    sources: Sequence[str]
    metrics: Sequence[str]
    scopes: Sequence[str]
    run: Array
    source: Array
    metric: Array
    scope: Array
    line: Array
    value: Array
