"""Text of logs and names -> one line without terminal control sequences."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Return the text on one line, each control character as its escape (`\\x1b`)."""
    words = " ".join(text.split())
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
