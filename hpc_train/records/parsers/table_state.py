"""Attention: whether the lines of a table are still to come."""

from __future__ import annotations

_PATIENCE = 50


class Attention:
    """From the head of a table to its end, or until too many other lines followed one another."""

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
        """Note a line that is none of the table's."""
        self._others += 1
        if self._others > _PATIENCE:
            self.wanted = False
