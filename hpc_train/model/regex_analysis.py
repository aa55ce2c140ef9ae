"""A regular expression -> the text in all its matches, and whether it can take exponential time."""

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
# `{2,5}` tries few lengths.
_FEW = 9


class Atom(NamedTuple):
    """A part of a regex, with the minimum number of its repeats, and how the number may vary."""

    kind: str
    text: str
    least: int
    varies: bool
    is_open: bool


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
        yield Atom(kind, match[kind], *_times(match["repeat"] or ""))


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
