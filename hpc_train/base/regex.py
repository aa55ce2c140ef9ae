"""Regular expressions: those of users with a time limit, and the text that every match contains."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

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


# An escape, a class, the start of a group, or any other character; then how often.
_ATOM = re.compile(
    r"(?:(?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*(?:\}|\Z)|\d{1,3}|.))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\Z))"
    r"|(?P<whole>\(\?(?:P=\w+|\#[^)]*|[aiLmsux-]+)(?:\)|\Z))"
    r"|(?P<open>\((?:\?(?:P<\w+>|<?[=!]|>|\(\w+\)|[aiLmsux-]*:))?)"
    r"|(?P<close>\))"
    r"|(?P<bar>\|)"
    r"|(?P<any>[.^$])"
    r"|(?P<plain>.))"
    r"(?P<repeat>[*+?][?+]?|\{\d{0,10},?\d{0,10}\}[?+]?)?",
    re.DOTALL,
)


class Atom(NamedTuple):
    """A part of a regex, with the minimum number of its repeats, and whether the number varies."""

    kind: str
    text: str
    least: int
    varies: bool
    repeat: str


def literal_of(regex: str) -> str:
    """Return the longest text that every match contains; "" if there is none or it is uncertain."""
    runs, run, depth = [""], "", 0
    for atom in atoms(regex):
        if (atom.kind == "bar" and depth == 0) or (atom.kind == "whole" and "#" not in atom.text):
            return ""
        letter = _letter(atom) if depth == 0 else ""
        if letter and atom.least:
            run += letter
        if not letter or atom.least != 1 or atom.varies:
            runs.append(run)
            run = ""
        depth += (atom.kind == "open") - (atom.kind == "close")
    return max([*runs, run], key=len)


def atoms(regex: str) -> Iterator[Atom]:
    """Yield the parts of a regex; the repeat of a group belongs to the closing parenthesis."""
    for match in _ATOM.finditer(regex):
        kind = next(name for name in match.re.groupindex if match[name] is not None)
        repeat = match["repeat"] or ""
        yield Atom(kind, match[kind], *_times(repeat), repeat)


def _times(repeat: str) -> tuple[int, bool]:
    """Return the minimum number of repeats, and whether it varies."""
    if not repeat:
        return 1, False
    if repeat[0] in "?*+":
        return int(repeat[0] == "+"), True
    least, comma, most = repeat.strip("{}?+").partition(",")
    return int(least or 0), bool(comma) and least != most


def _letter(atom: Atom) -> str:
    """Return the character that an atom matches, if it matches only one."""
    if atom.kind == "plain":
        return atom.text
    if atom.kind == "escape" and len(atom.text) == len("\\.") and not atom.text[1].isalnum():
        return atom.text[1]
    return ""
