"""The figures of a report."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from hpc_train.api.blocks import Block, Picture, as_bundle
from hpc_train.api.display import Displayed

if TYPE_CHECKING:
    from hpc_train.model.report import Figure


class ReportFigure(Displayed):
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

    def _blocks(self) -> Sequence[Block]:
        return [Picture(self.caption, self.png)]

    def __repr__(self) -> str:
        """Return the class and the name."""
        return f"ReportFigure({self.name!r})"


class FigureList(tuple[ReportFigure, ...]):
    """The figures of a report, the main one first."""

    __slots__ = ()

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """Return all figures, one below the other (IPython calls this)."""
        blocks = [block for figure in self for block in figure._blocks()]
        return as_bundle(blocks)
