"""Regular expressions: those of users with a time limit, and the text that every match contains."""

import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, cast

# A usual search takes microseconds. Time of one search, and of all those that took long [s].
_MOST_S, _LONG_S, _MOST_OF_ALL_S = 1.0, 0.01, 5.0
# So much of a long line is searched, before and after a literal [characters].
_BEFORE, _AFTER = 256, 768


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

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return the first match; None if there is none, or the expression is slow."""
        return self._timed("search", text, start, end)

    def search_near(self, text: str, literals: Iterable[str]) -> re.Match[str] | None:
        """Return the first match; in a long text, near the first of the literals only."""
        if len(text) <= _BEFORE + _AFTER:
            return self.search(text)
        places = [at for literal in literals if (at := text.find(literal)) >= 0]
        start = max(0, min(places, default=0) - _BEFORE)
        return self.search(text[start : start + _BEFORE + _AFTER])

    def finditer(
        self, text: str, start: int = 0, end: int = sys.maxsize
    ) -> Iterator[re.Match[str]]:
        """Yield the matches; none if the expression is slow."""
        while (match := self._timed("search", text, start, end)) is not None:
            yield match
            start = max(match.end(), match.start() + 1)

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


# The parser of the standard library, which was sre_parse before Python 3.11.
parser: Any = vars(re).get("_parser") or vars(re)["sre_parse"]
_REPEATS = (parser.MAX_REPEAT, parser.MIN_REPEAT)
_BREAKS, _MOST = (ord("\n"), ord("\r")), 100


def literal_of(regex: str) -> str:
    """Return the longest text that every match contains; "" if there is none or it is uncertain."""
    with suppress(re.error, OverflowError, RecursionError):
        tree = parser.parse(regex)
        if not tree.state.flags & re.IGNORECASE:
            return max(_texts(tree), key=len)
    return ""


def _texts(parts: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yield the texts that are in each match of the parts of an expression."""
    text = ""
    for kind, value in parts:
        least, most, inner = value if kind in _REPEATS else (1, 1, [(kind, value)])
        item, code = inner[0] if len(inner) == 1 else (None, 0)
        is_letter, least = item is parser.LITERAL and code not in _BREAKS, min(least, _MOST)
        if is_letter:
            text += chr(code) * least
        if not is_letter or least != most:
            yield text
            text = ""
    yield text
