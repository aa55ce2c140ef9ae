"""The lines of a summary -> the first ones, and where the others are."""

from __future__ import annotations

from collections.abc import Sequence

# Number of series with a line for answer and baseline.
MOST_LINES = 8
MORE = {
    "fastest series": "{} more series are the fastest at a size: table Comparison at each size.",
    "series": "{} more series are in the table of points.",
    "fastest points": "{} more fastest points are in the table of points.",
    "baselines": "Baselines of {} more series are in the table of points.",
    "common baselines": "Baselines common to {} more groups of series are in the table of points.",
}


def first_lines(lines: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the first lines, and how many are left to the table."""
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    return (*lines[:MOST_LINES], MORE[what].format(len(lines) - MOST_LINES))
