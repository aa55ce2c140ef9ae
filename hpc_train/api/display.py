"""How a notebook shows a value: text, Markdown and HTML at once; a cell that is updated."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from hpc_train.api.blocks import Block, Verbatim, as_bundle


class Displayed(ABC):
    """A value that a notebook shows as text, Markdown or HTML, whichever it prefers."""

    @abstractmethod
    def _blocks(self) -> Sequence[Block]:
        """Return what is shown."""

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """Return the value in each format of a notebook (IPython calls this)."""
        return as_bundle(self._blocks())


class ShownText(str):
    """Text of a log, a script or a report; a notebook shows its lines instead of a literal."""

    __slots__ = ()

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """Return the text in each format of a notebook (IPython calls this)."""
        return as_bundle([Verbatim(str(self))])


def shown_path(path: Path) -> str:
    """Return a path below the current folder without it: a notebook is read elsewhere."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def updated_cell(value: Displayed) -> Callable[[], None]:
    """Show a value in the current cell of a notebook; return a function that updates it there.

    Anywhere else nothing is shown: not in a script, nor in a terminal.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return _nothing
    from IPython.display import display

    last = value._repr_mimebundle_()
    handle = display(last, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def update() -> None:
        nonlocal last
        current = value._repr_mimebundle_()
        if handle is not None and current != last:
            handle.update(current, raw=True)
            last = current

    return update


def _nothing() -> None:
    """Show nothing."""
