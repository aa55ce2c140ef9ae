"""Step numbers: within the run for programs that count per epoch, and steps between log lines."""

from __future__ import annotations

from typing import NamedTuple

from hpc_train.records.line import Line


class StepPosition(NamedTuple):
    """A logged step's number within the run, and how many steps came since the one before."""

    step: int
    since: int


class RunningStep:
    """Continues the count over epochs; unlogged steps at the end of an epoch are not counted."""

    def __init__(self) -> None:
        self._epoch: object = None
        self._last = 0
        self._since = 1
        self._before = 0

    def at(self, epoch: object, step: int) -> StepPosition:
        """Return the position of the step that has number `step` (from 1) within its epoch."""
        if epoch != self._epoch or step < self._last:
            self._before += self._last
            self._epoch, self._last = epoch, 0
        if step != self._last:
            self._since, self._last = max(1, step - self._last), step
        return StepPosition(self._before + step, self._since)


class Intervals:
    """Remembers the last step that each rank logged."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[int, int]] = {}

    def since(self, line: Line, step: int, first: int = 1) -> int:
        """Return the steps since the previous line; `first` if none, or if the step decreases."""
        # A prefix of torchrun states the local rank only.
        who = (line.prefix.rank, line.prefix.local, line.prefix.task)
        last, before = self._last.get(who, (step, first))
        steps = before if step == last else step - last if step > last else first
        self._last[who] = (step, steps)
        return steps
