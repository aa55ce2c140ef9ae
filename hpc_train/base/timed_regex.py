"""Regular expressions of users, which may be slow: each search has a time limit.

Python's `re` cannot be interrupted, and no analysis tells all slow expressions from the others. One
that took too long is not searched again: `is_slow` says so.
"""

from __future__ import annotations

import re
import time
from typing import cast

# A usual search takes microseconds. Time of one search, and of all those that took long [s].
_MOST_S, _LONG_S, _MOST_OF_ALL_S = 1.0, 0.01, 5.0


class TimedPattern:
    """A regular expression that is given up once its searches take too long."""

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        """Compile an expression.

        Raises:
            re.error: it is invalid. OverflowError, RecursionError: it is too large.
        """
        # Most commands have no such expression, and need not import the library.
        import regex

        self.text = text
        self.groupindex = dict(re.compile(text).groupindex)
        self.is_slow = False
        self._spent_s = 0.0
        try:
            self._compiled = regex.compile(text, regex.IGNORECASE if ignore_case else 0)
        except regex.error as failure:
            raise re.error(str(failure)) from None

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match; None if there is none, or the expression is slow."""
        return self._timed("search", text, 0, len(text))

    def match(self, text: str, start: int, end: int) -> re.Match[str] | None:
        """Return the match that begins at `start`, not beyond `end`."""
        return self._timed("match", text, start, end)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return the match of the whole text."""
        return self._timed("fullmatch", text, 0, len(text))

    def _timed(self, method: str, text: str, start: int, end: int) -> re.Match[str] | None:
        if self.is_slow:
            return None
        begun = time.perf_counter()
        try:
            found = getattr(self._compiled, method)(text, start, end, timeout=_MOST_S)
        except TimeoutError:
            found, self.is_slow = None, True
        took = time.perf_counter() - begun
        if took > _LONG_S:
            self._spent_s += took
            self.is_slow |= self._spent_s > _MOST_OF_ALL_S
        return cast("re.Match[str] | None", found)

    def __eq__(self, other: object) -> bool:
        """Whether the other one is the same expression, and given up or not as this one."""
        same = isinstance(other, TimedPattern) and self.text == other.text
        return same and self.is_slow == cast(TimedPattern, other).is_slow

    __hash__ = None  # type: ignore[assignment]


def whole_match(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether an expression matches a whole text; also if that takes too long to say."""
    timed = TimedPattern(pattern, ignore_case=ignore_case)
    return timed.fullmatch(text) is not None or timed.is_slow
