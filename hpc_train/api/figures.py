"""The figures of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.model.report import Figure


class ReportFigure:
    """One figure of a report."""

    def __init__(self, figure: Figure) -> None:
        self._figure = figure

    @property
    def name(self) -> str:
        """The name of its files."""
        return self._figure.name

    @property
    def caption(self) -> str:
        """What it shows."""
        return self._figure.caption

    @property
    def png(self) -> bytes:
        """The image as PNG."""
        return self._figure.images["png"]

    @property
    def svg(self) -> str:
        """The image as SVG."""
        return self._figure.images["svg"].decode()

    def __repr__(self) -> str:
        """Return the class and the name."""
        return f"ReportFigure({self.name!r})"


class FigureList(tuple[ReportFigure, ...]):
    """The figures of a report, the main one first."""

    __slots__ = ()
