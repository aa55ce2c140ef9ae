"""A regular expression -> how its time grows with the length of the text, without running it.

Adjacent repeats that match the same character divide a sequence of it in every possible way before
they fail: k repeats take n^k / k! steps for n characters. See Davis et al., "The Impact of
Regular Expression Denial of Service in Practice", 2018.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from hpc_train.model.regex_analysis import Atom, atoms

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
