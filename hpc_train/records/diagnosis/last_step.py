"""The last step of a training, `iteration 500/500`: evidence that the work is done."""

from __future__ import annotations

import re
from heapq import merge

from hpc_train.records.diagnosis.end_markers import LONGEST, Ending, Kind
from hpc_train.records.line import Line
from hpc_train.records.log_blocks import Block

# `iteration 500/ 500 |`, `iteration: 500 / 500`, `[step=500/500,`. Every step of a long training is
# such a line, so the search is in bytes, where a pattern that begins with a word is fast.
_STEPS = (
    re.compile(rb"iteration:? {1,12}(\d{1,12}) ?/ {0,12}(\d{1,12})\b"),
    re.compile(rb"\[step=(\d{1,12}) ?/ {0,12}(\d{1,12})\b"),
)
_LAST = tuple(re.compile(step.pattern.replace(rb"(\d{1,12})\b", rb"\1\b")) for step in _STEPS)
_WORD = re.compile(rb"\w")


class StepReader:
    """Finds the last step in one log, by blocks, and the later steps that cancel it."""

    literals = (b"iteration ", b"iteration: ", b"[step=")

    def __init__(self) -> None:
        self.endings: list[Ending] = []
        self._done = False

    def read_block(self, block: Block, number: int) -> None:
        """Note the last steps; if a lower step follows, the last step was only that of an epoch."""
        text = bytes(memoryview(block.data)[: block.end])
        if not self._done and not any(last.search(text) for last in _LAST):
            return
        stop = counted = 0
        for step in merge(*(one.finditer(text) for one in _STEPS), key=re.Match.start):
            at = step.start()
            # The first step on a line is used.
            if at < stop or (text[at] != ord("[") and _WORD.match(text[at - 1 : at])):
                continue
            stop = len(text) if (end := text.find(b"\n", at)) < 0 else end
            stop = end if (end := text.find(b"\r", at, stop)) >= 0 else stop
            last = step[1] == step[2]
            if last or self._done:
                start = 1 + max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at))
                number += text.count(b"\n", counted, start)
                counted = start
                said = Line(text[start:stop]).text[:LONGEST]
                kind: Kind = "work" if last else "restart"
                self.endings.append(Ending(kind=kind, line=number, text=said))
            self._done = last
