"""Steps that a program counts anew in each epoch -> their numbers within the run."""

from __future__ import annotations

from typing import NamedTuple


class StepPosition(NamedTuple):
    """A logged step's number within the run, and how many steps came since the one before."""

    step: int
    since: int


class RunningStep:
    """Counts on over epochs; steps after the last logged one of an epoch are not known of."""

    def __init__(self) -> None:
        self._epoch: object = None
        self._last = 0
        self._since = 1
        self._before = 0

    def at(self, epoch: object, step: int) -> StepPosition:
        """Return the place of the step that has number `step` (from 1) within its epoch."""
        if epoch != self._epoch or step < self._last:
            self._before += self._last
            self._epoch, self._last = epoch, 0
        if step != self._last:
            self._since, self._last = max(1, step - self._last), step
        return StepPosition(self._before + step, self._since)
