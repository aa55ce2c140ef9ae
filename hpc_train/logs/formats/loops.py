r"""The number of ranks in the arguments that programs print when they start.

| line | world_size |
|---|---|
| `Namespace(..., dist_url='env://', world_size=16)`, on one line or one argument per line | 16 |
| `Namespace(..., distributed_world_size=8, ...)` (fairseq) | 8 |
| `running on rank 0 with world size 8` | 8 |
| `\| distributed init (rank 0, world 2): env://` (LAVIS) | 2 |

The scope is global. An argument of 1 or less is often a default; together with
`multiprocessing_distributed`, the argument is the number of nodes. Both are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.logs.formats.base import Coded, Hit
from hpc_train.logs.line import Line

_ARGUMENT = re.compile(r"(?<![\w.])(?:distributed_)?world_size=(\d{1,9})(?=[,)\s]|$)")
_SENTENCE = re.compile(
    r"\b[Rr]unning on rank \d{1,9},? (?:with|of) world[ _]size:? (\d{1,9})\b"
    r"|^\| distributed init \(rank \d{1,9}, world (\d{1,9})\): "
)
_NODES = "multiprocessing_distributed="
_MOST_LINES = 1000


class WorldSize(Coded):
    """Parser of the arguments; remembers an open `Namespace(`."""

    def __init__(self) -> None:
        self._open = 0
        self._found = 0

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the number of ranks, at the end of the arguments."""
        text = line.text
        sentence = _SENTENCE.search(text)
        if sentence is not None:
            size = float(sentence[1] or sentence[2])
            yield Hit("world_size", size, "global", once="world_size")
            return
        start = text.find("Namespace(")
        if start >= 0:
            self._open, self._found, text = _MOST_LINES, 0, text[start:]
        self._open = 0 if _NODES in text else self._open - 1
        self.wants_next = self._open > 0
        if self._open < 0 or _NODES in text:
            return
        found = _ARGUMENT.search(text)
        self._found = int(found[1]) if found else self._found
        # Values may contain brackets: with one argument per line, an argument ends at the line end.
        if text.endswith(")") or (start >= 0 and not text.endswith(",")):
            self._open, self.wants_next = 0, False
            if self._found > 1:
                yield Hit("world_size", float(self._found), "global", once="world_size")
