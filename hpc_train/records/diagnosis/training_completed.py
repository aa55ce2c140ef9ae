"""The last step, or the last epoch with its results: evidence that the training is done."""

from __future__ import annotations

import re
from heapq import merge

from hpc_train.records.diagnosis.end_markers import LONGEST, Ending, EndingKind
from hpc_train.records.line import Line
from hpc_train.records.log_blocks import Block

# `iteration 500/ 500 |`, `iteration: 500 / 500`, `[step=500/500,`. Every step of a long training is
# such a line, so the search is in bytes, where a pattern that begins with a word is fast.
_STEPS = (
    re.compile(rb"iteration:? {1,12}(\d{1,12}) ?/ {0,12}(\d{1,12})\b"),
    re.compile(rb"\[step=(\d{1,12}) ?/ {0,12}(\d{1,12})\b"),
)
_LAST_STEPS = tuple(re.compile(step.pattern.replace(rb"(\d{1,12})\b", rb"\1\b")) for step in _STEPS)
_WORD = re.compile(rb"\w")
# `Epoch 35/35, Train Loss: 0.57`; `Epoch 35/35` with the finished bar of Keras below it.
_EPOCH = re.compile(
    rb"poch[ :]{1,2}\[?(?P<epoch>\d{1,6}) ?/ ?(?P<of>\d{1,6})\b(?P<rest>[^\r\n]{0,300})"
)
_LAST = re.compile(rb"poch[ :]{1,2}\[?0{0,5}(\d{1,6}) ?/ ?0{0,5}\1\b")
_RESULT = re.compile(rb"(?i)(?:loss|acc|acc[a-z]{1,5}|ppl|f1|auc|m[as]e)['\"]?[ :=]{1,4}\(?-?\d")
# A line of this form is one of many in its epoch.
_INNER = re.compile(rb"(?i)\d ?/ ?\d|\d%\||it/s|step|batch|iter")
_BAR = re.compile(
    rb"\b(\d{1,9})/\1 (?:\[={1,60}\] - |(?:\xe2\x94\x81){1,60} )\d{1,6}m?s "
    rb"[^\r\n]{0,60}(?:loss|acc)"
)
_CLOSED = re.compile(rb"[\]:,. ]{0,4}$")


class StepReader:
    """Finds the last step in one log, by blocks, and the later steps that cancel it."""

    literals = (b"iteration ", b"iteration: ", b"[step=")

    def __init__(self) -> None:
        self.endings: list[Ending] = []
        self._done = False

    def read_block(self, block: Block, number: int) -> None:
        """Note the last steps; if a lower step follows, the last step was only that of an epoch."""
        text = bytes(memoryview(block.data)[: block.end])
        if not self._done and not any(last.search(text) for last in _LAST_STEPS):
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
                shown = Line(text[start:stop]).text[:LONGEST]
                kind: EndingKind = "work" if last else "restart"
                self.endings.append(Ending(kind=kind, line=number, text=shown))
            self._done = last


class EpochReader:
    """Finds the last epoch in one log, by blocks, and the later epochs that cancel it.

    The last epoch counts only after the one before it, and if its line occurs once: ranks or steps
    may repeat the same line.
    """

    literals = (b"poch ", b"poch: ", b"poch:")

    def __init__(self) -> None:
        self.endings: list[Ending] = []
        self._before = (0, 0)
        self._done = False

    def read_block(self, block: Block, number: int) -> None:
        """Note the last epoch, and one that follows it."""
        text = bytes(memoryview(block.data)[: block.end])
        start = 0 if self._done or _LAST.search(text) else max(0, text.rfind(b"poch"))
        for match in _EPOCH.finditer(text, start):
            epoch = int(match["epoch"]), int(match["of"])
            if self._done:
                self._take_back(match, number, again=epoch == self._before)
            elif epoch == (self._before[0] + 1, self._before[1]) and _is_last(match, text):
                self._note(match, number, "part")
                self._done = True
            self._before = epoch

    def _take_back(self, match: re.Match[bytes], number: int, *, again: bool) -> None:
        self._done = False
        if again:
            self.endings.pop()
        else:
            self._note(match, number, "restart")

    def _note(self, match: re.Match[bytes], number: int, kind: EndingKind) -> None:
        text, at = match.string, match.start()
        start = 1 + max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at))
        line = number + text.count(b"\n", 0, start)
        shown = Line(text[start : match.end()]).text[:LONGEST]
        self.endings.append(Ending(kind=kind, line=line, text=shown))


def _is_last(match: re.Match[bytes], text: bytes) -> bool:
    if int(match["epoch"]) != int(match["of"]):
        return False
    rest = match["rest"]
    if _CLOSED.fullmatch(rest):
        following = text.find(b"poch", match.end())
        return bool(_BAR.search(text, match.end(), following if following >= 0 else len(text)))
    return bool(_RESULT.search(rest)) and not _INNER.search(rest)
