"""Versions as people write them -> numbers that can be compared."""

from __future__ import annotations

import re


def numbers(release: str) -> tuple[int, ...]:
    """Return (2, 9, 1) for `2.9.1+cu130`, (2, 0) for `2`; what follows the numbers is left out."""
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", release)
    found = tuple(int(part) for part in match[0].split(".")) if match else ()
    return (*found, 0) if len(found) == 1 else found
