"""Lines of YAML with comments, for a file that users edit."""

from __future__ import annotations

import re

import msgspec

from hpc_train.base.units import Duration

YamlScalar = str | int | bool
Item = YamlScalar | tuple[YamlScalar, ...]
GUESSED = "guessed"

_PLAIN = re.compile(
    r"^(?:(--|/)?[A-Za-z][A-Za-z0-9_./=-]*"
    r"|(\d+[dhms])+|\d+[MG]|20\d\d-\d\d-\d\d)"
)
# YAML 1.1 parses these texts as other types.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def line(key: str, value: Item, note: str = "", depth: int = 0) -> str:
    """Return `key: value  # note`."""
    return f"{'  ' * depth}{key}: {text(value)}{_comment(note)}"


def question(key: str, example: str, ask: str, depth: int = 0) -> str:
    """Return a key of unknown value, as a comment with a question."""
    return f"{'  ' * depth}# {key}: {example}{_comment(ask)}"


def remark(words: str, depth: int = 0) -> str:
    """Return a comment."""
    return f"{'  ' * depth}{_comment(words).strip()}"


def text(value: Item) -> str:
    """Write a value so that YAML parses it unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return msgspec.json.encode(value).decode()


def time(value: Duration) -> str:
    """Write a time in the notation of input files: 2d, 1h30m."""
    days, rest = divmod(int(value), 86400)
    parts = ((days, "d"), (rest // 3600, "h"), (rest % 3600 // 60, "m"), (rest % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _comment(words: str) -> str:
    """Return text as a comment on one line."""
    plain = "".join(c if c.isprintable() else "?" for c in words)
    return f"  # {plain}" if plain else ""
