"""Slurm's node lists -> names."""

import re
from itertools import product

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")

# A name with parts in brackets, between commas: `a[01-04,7]`, `r1c[2-3]n[1-4]`, `lab1`.
_NAME = re.compile(r"(?:[^\[\],\s]|\[[0-9,-]{1,20000}\]){1,200}")
_PART = re.compile(r"[^\[\]]{1,200}|\[[0-9,-]{1,20000}\]")
_RANGE = re.compile(r"(?P<low>[0-9]{1,9})(?:-(?P<high>[0-9]{1,9}))?")
# More nodes than any machine has.
_MOST = 100_000


def node_names(text: str) -> tuple[str, ...]:
    """Return the names in a node list of Slurm, `n[01-03],gpu7`, each once.

    Empty for any other text.
    """
    words = _NAME.findall(text)
    if ",".join(words) != text.strip():
        return ()
    names: dict[str, None] = {}
    for word in words:
        parts = [_alternatives(part) for part in _PART.findall(word)]
        count = 1
        for part in parts:
            count *= len(part)
        if not 0 < count <= _MOST - len(names):
            return ()
        names |= dict.fromkeys(map("".join, product(*parts)))
    return tuple(names)


def node_number(host: str, nodes: str) -> int | None:
    """Return the number of a host in a node list, from 0; None if it is not there."""
    short = [name.partition(".")[0] for name in (host, *node_names(nodes))]
    return short.index(short[0], 1) - 1 if short[0] in short[1:] else None


def _alternatives(part: str) -> list[str]:
    """Return the numbers of `[01-03,7]` with their digits, or the text itself."""
    if not part.startswith("["):
        return [part]
    found: list[str] = []
    for text in part[1:-1].split(","):
        match = _RANGE.fullmatch(text)
        low = int(match["low"]) if match else 0
        high = int(match["high"] or low) if match else -1
        if match is None or high < low or high - low >= _MOST:
            return []
        found += [f"{number:0{len(match['low'])}}" for number in range(low, high + 1)]
    return found


def host_name(stated: object) -> str:
    """Return the short name of the host that an event states; empty if that is none."""
    found = _HOST.match(stated) if isinstance(stated, str) else None
    return found[0] if found else ""
