"""The parts of a regular expression, and the text that every match contains."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
