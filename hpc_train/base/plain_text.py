"""Text, also from logs and file names -> text without terminal control sequences."""

import re
from collections.abc import Sequence

# Control characters except tab and line feed, bidirectional marks, other line separators.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
    "|\r(?!\n)"
)
_COLOUR = re.compile("\x1b\\[[0-9;]{0,40}[mK]")


def plain(text: str) -> str:
    """Return lines of text with a blank for each control or bidirectional character."""
    return _ACTIVE.sub(" ", text)


def shown(log: str) -> str:
    """Return text of a log as a terminal may get it: without colours, a line for each return."""
    return plain(_COLOUR.sub("", log).replace("\r\n", "\n").replace("\r", "\n"))


def aligned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return plain cells on one line each, as wide as the widest of their column."""
    flat = [[plain(" ".join(cell.splitlines())) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*flat, strict=True)]
    return [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in flat]


def plain_json(text: str | bytes) -> str:
    """Return the same JSON with such characters written as `\\u009b`."""
    decoded = text.decode() if isinstance(text, bytes) else text
    # JSON itself escapes the control characters below 0x20.
    if decoded.isascii() and "\x7f" not in decoded:
        return decoded
    return _ACTIVE.sub(lambda match: f"\\u{ord(match[0]):04x}", decoded)
