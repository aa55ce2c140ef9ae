"""Range: a quantity that is known only to lie between two numbers."""

from hpc_train.base.value import Value


class Range(Value, frozen=True, kw_only=True):
    """The least and the most that a quantity can be; `high` is None if nothing limits it."""

    low: float = 0.0
    high: float | None = None

    def __add__(self, other: "Range") -> "Range":
        """Return the bounds of a sum."""
        high = None if self.high is None or other.high is None else self.high + other.high
        return Range(low=self.low + other.low, high=high)

    def times(self, factor: float) -> "Range":
        """Return the bounds of a multiple; the factor is not negative."""
        return Range(low=self.low * factor, high=None if self.high is None else self.high * factor)


def exactly(value: float) -> Range:
    """Return the bounds of a known number."""
    return Range(low=value, high=value)
