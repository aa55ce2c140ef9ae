"""Of how many steps a logged value is the mean: those since the line before, of the same rank."""

from __future__ import annotations

from hpc_train.records.line import Line


class Intervals:
    """Remembers the last step that each rank logged."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[int, int]] = {}

    def since(self, line: Line, step: int, first: int = 1) -> int:
        """Return the steps since the line before; `first` where there is none, or steps go back."""
        # Ranks of torchrun are told apart by their local rank alone.
        who = (line.prefix.rank, line.prefix.local, line.prefix.task)
        last, before = self._last.get(who, (step, first))
        steps = before if step == last else step - last if step > last else first
        self._last[who] = (step, steps)
        return steps
