"""Measurements of ours beside those of another -> a table that says whether budgets are met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from hpc_train.model.value import Value


class Row(Value, frozen=True, kw_only=True):
    """What ours takes, what the other takes, and how they compare, round by round."""

    what: str
    ours: Sequence[float]
    beside: str
    others: Sequence[float]
    unit: str = " s"
    compare: Callable[[float, float], float] = lambda ours, other: ours - other
    form: str = "{:+.3f} s"
    budget: float | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        found = statistics.median(map(self.compare, self.ours, self.others))
        budget, met = "", ""
        if self.budget is not None:
            budget, met = self.form.format(self.budget), "yes" if found <= self.budget else "no"
        ours, others = _spread(self.ours, self.unit), _spread(self.others, self.unit)
        return (self.what, ours, self.beside, others, self.form.format(found), budget, met)


HEADS = ("what", "hpctrain", "beside it", "takes", "compared", "at most", "met")


def _spread(values: Sequence[float], unit: str) -> str:
    """Return the median, the range and the number of values; or the one that all are."""
    if len(set(values)) == 1:
        return f"{values[0]:.4g}{unit}"
    low, high = min(values), max(values)
    return f"{statistics.median(values):.3f}{unit} ({low:.3f}-{high:.3f}, n={len(values)})"


def table(rows: Sequence[Row]) -> str:
    """Return the table as aligned Markdown."""
    lines = [HEADS, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)
