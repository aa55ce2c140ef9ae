"""Digits that a tool printed -> a number."""

from __future__ import annotations

_LONGEST = 15


def whole(text: str | None) -> int | None:
    """Return a whole number; None for anything else, foreign digits and absurd lengths included."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _LONGEST):
        return None
    return int(text)
