"""Analysis of a regular expression: the text of every match, and the cost of a search."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

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
# `{2,5}` tries few lengths.
_FEW = 9


class Atom(NamedTuple):
    """A part of a regex, with the minimum number of its repeats, and how the number may vary."""

    kind: str
    text: str
    least: int
    varies: bool
    is_open: bool
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


def may_explode(regex: str) -> bool:
    """Whether a repeated group contains a repeat or a choice: its time may grow exponentially."""
    inside = [False]
    for atom in atoms(regex):
        if atom.kind == "open":
            inside.append(False)
        elif atom.kind == "close" and len(inside) > 1:
            held = inside.pop()
            if held and atom.varies:
                return True
            inside[-1] |= held or atom.is_open
        else:
            inside[-1] |= atom.is_open or atom.kind == "bar"
    return False


def atoms(regex: str) -> Iterator[Atom]:
    """Yield the parts of a regex; the repeat of a group belongs to the closing parenthesis."""
    for match in _ATOM.finditer(regex):
        kind = next(name for name in match.re.groupindex if match[name] is not None)
        repeat = match["repeat"] or ""
        yield Atom(kind, match[kind], *_times(repeat), repeat)


def _times(repeat: str) -> tuple[int, bool, bool]:
    """Return the minimum number of repeats, whether it may be large, and whether it varies."""
    if not repeat:
        return 1, False, False
    if repeat[0] == "?":
        return 0, False, True
    if repeat[0] in "*+":
        return (0 if repeat[0] == "*" else 1), True, True
    least, comma, most = repeat.strip("{}?+").partition(",")
    if not comma:
        return int(least or 0), False, False
    return int(least or 0), not most or int(most) - int(least or 0) > _FEW, least != most


def _letter(atom: Atom) -> str:
    """Return the character that an atom matches, if it matches only one."""
    if atom.kind == "plain":
        return atom.text
    if atom.kind == "escape" and len(atom.text) == len("\\.") and not atom.text[1].isalnum():
        return atom.text[1]
    return ""


# Latin, Greek and Cyrillic letters, spaces and signs: every class of characters contains one.
_ALPHABET = frozenset(map(chr, (*range(0x500), 0x2009, 0x2501, 0x4E00, 0xFFFD)))
_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
_ANCHORS = ("^", r"\A")


class _State(NamedTuple):
    """The adjacent repeats that end at a place of the regex, as texts.

    `common` are the characters that the last repeat shares with all parts that must match after it.
    """

    repeats: tuple[str, ...]
    common: frozenset[str]


class _Group(NamedTuple):
    """An open group: the state before it, and the states at the ends of its other branches."""

    text: str
    before: _State
    ends: list[_State]
    held: set[str]


def touching(regex: str, *, anchored: bool = False) -> tuple[str, ...]:
    """Return the longest list of adjacent repeats that share a character.

    If a text of length n does not match, the time is proportional to n to the power of the number
    of these repeats. A search begins at each character, and counts as a repeat ("a search"), unless
    the regex is `anchored` to the beginning of the text. Repeats that are separated by a text of
    several characters are not counted together.

    Raises:
        re.error: it cannot be compiled.
    """
    flags = re.compile(regex).flags
    walk = _Walk(_State((), frozenset()) if anchored else _State(("a search",), _ALPHABET))
    for atom in atoms(regex):
        walk.step(atom, flags)
    return walk.worst


class _Walk:
    """A walk over the atoms of a regex, one branch after the other."""

    def __init__(self, start: _State) -> None:
        self.worst: tuple[str, ...] = ()
        self._state = start
        self._groups = [_Group("", self._state, [], set())]

    def step(self, atom: Atom, flags: int) -> None:
        """Process an atom."""
        if atom.kind == "open":
            self._groups.append(_Group(atom.text, self._state, [], set()))
        elif atom.kind == "bar":
            group = self._groups[-1]
            group.ends.append(self._state)
            self._state = group.before
        elif atom.kind == "close" and len(self._groups) > 1:
            self._close(atom)
        elif atom.kind != "whole":
            self._go_on(atom, _characters(atom.text, flags))

    def _close(self, atom: Atom) -> None:
        group = self._groups.pop()
        # If a group is optional, the parts before and after it may be adjacent.
        ends = [*group.ends, self._state, *([group.before] if not atom.least else [])]
        self._state = max(ends, key=lambda end: (bool(end.common), len(end.repeats)))
        if group.text in _AROUND:
            self._state = group.before
        elif atom.varies:
            self._state = group.before
            self._go_on(atom._replace(text="(...)"), frozenset(group.held))
        self._groups[-1].held.update(group.held)

    def _go_on(self, atom: Atom, characters: frozenset[str]) -> None:
        repeats, common = self._state
        self._groups[-1].held.update(characters)
        if atom.least:
            # Only a part that must match can fail, so that the repeats before it are tried again.
            self.worst = max(self.worst, repeats, key=len)
        if atom.kind in ("any", "escape") and not characters:
            if atom.text in _ANCHORS:
                self._state = _State((), frozenset())
        elif atom.varies:
            before = repeats if common & characters else ()
            self._state = _State((*before, atom.text), characters)
        elif atom.least:
            self._state = _State(repeats, common & characters)


@lru_cache(maxsize=256)
def _characters(text: str, flags: int) -> frozenset[str]:
    """Return the characters that an atom matches: none for an anchor, all for a reference."""
    try:
        match = re.compile(text, flags).fullmatch
    except re.error:
        return _ALPHABET
    return frozenset(filter(match, _ALPHABET))
