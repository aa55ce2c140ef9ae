"""Whether the rows of a table are still expected."""

from __future__ import annotations

_PATIENCE = 50


class TableState:
    """True from the header of a table to its end, or until too many unrelated lines follow."""

    def __init__(self) -> None:
        self.wanted = False
        self._others = 0

    def begin(self) -> None:
        """Note the head of a table, or one of its rows."""
        self.wanted = True
        self._others = 0

    def end(self) -> None:
        """Note the end of the table."""
        self.wanted = False

    def other(self) -> None:
        """Note a line that does not belong to the table."""
        self._others += 1
        if self._others > _PATIENCE:
            self.wanted = False
