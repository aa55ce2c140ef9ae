"""A profile's regular expression of accounts -> patterns of Lua, for the job_submit plug-in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.model.regex_parts import Atom, atoms

# `(a|b)(c|d)` is four patterns in Lua, which has no alternatives.
_MOST = 64
_TIMES = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_MOST_TIMES = 32
Texts = tuple[str, ...]


class _NotInLuaError(Exception):
    """Lua has no pattern for a regular expression."""


def lua_patterns(regex: str) -> Texts | None:
    """Return patterns of which one matches wherever the regex matches a whole account.

    None if Lua cannot express the regex, such as one with a repeated group.
    """
    try:
        found = _choices(list(atoms(regex)))
    except _NotInLuaError:
        return None
    return tuple(f"^{text}$" for text in found)


def _choices(parts: list[Atom]) -> Texts:
    """Return the texts of the alternatives of a regex; the list is consumed up to a `)`."""
    done: Texts = ()
    texts: Texts = ("",)
    while parts:
        atom = parts.pop(0)
        if atom.kind == "close":
            if atom.repeat:
                raise _NotInLuaError
            break
        if atom.kind == "bar":
            done, texts = (*done, *texts), ("",)
            continue
        following = _texts(atom, parts)
        texts = tuple(text + more for text in texts for more in following)
        if len(texts) + len(done) > _MOST:
            raise _NotInLuaError
    return (*done, *texts)


def _texts(atom: Atom, rest: list[Atom]) -> Texts:
    if atom.kind == "open":
        if atom.text not in ("(", "(?:") and not atom.text.startswith("(?P<"):
            raise _NotInLuaError
        return _choices(rest)
    if atom.text in ("^", "$"):
        return ("",)
    return ("".join(_repeated(_one(atom), atom.repeat)),)


def _one(atom: Atom) -> str:
    """Return Lua's text for one character."""
    if atom.kind == "escape":
        return _escape(atom.text[1:], inside=False)
    if atom.kind == "set":
        body = atom.text[1:-1]
        sign = "^" if body.startswith("^") else ""
        if not body.isascii():
            raise _NotInLuaError
        parts = re.findall(r"\\.|.", body[len(sign) :])
        letters = (_escape(p[1:], inside=True) if p[0] == "\\" else _plain_in_set(p) for p in parts)
        return f"[{sign}{''.join(letters)}]"
    if atom.kind in ("plain", "any") and atom.text.isascii():
        return atom.text if atom.text == "." or atom.text.isalnum() else f"%{atom.text}"
    raise _NotInLuaError


def _escape(letter: str, *, inside: bool) -> str:
    if letter in ("w", "W"):
        if inside and letter == "W":
            raise _NotInLuaError
        return "%w_" if inside else f"[{'^' if letter == 'W' else ''}%w_]"
    if letter in ("d", "D", "s", "S"):
        return f"%{letter}"
    if len(letter) > 1 or letter.isalnum():
        raise _NotInLuaError
    return f"%{letter}"


def _plain_in_set(letter: str) -> str:
    return letter if letter.isalnum() or letter == "-" else f"%{letter}"


def _repeated(one: str, repeat: str) -> Iterator[str]:
    """Yield one character as often as a repeat says."""
    if repeat[:1] in ("", "*", "+", "?"):
        if repeat[1:] == "+":
            raise _NotInLuaError
        yield one + repeat[:1]
        return
    found = _TIMES.fullmatch(repeat)
    if found is None or max(int(found[1]), int(found[2] or 0)) > _MOST_TIMES:
        raise _NotInLuaError
    least = int(found[1])
    yield one * least
    if found[2] == "":
        yield f"{one}*"
    elif found[2]:
        yield f"{one}?" * (int(found[2]) - least)
