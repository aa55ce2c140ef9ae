"""How a notebook shows a value: the lines of a terminal, or an image."""

import base64
import html
from collections.abc import Container
from pathlib import Path

from hpc_train.base.plain_text import plain


class Displayed:
    """A value that a notebook shows as text, without control characters and markup."""

    def _shown(self) -> str:
        """Return the lines that are shown."""
        return str(self)

    def _html(self) -> str:
        """Return the lines as HTML: a long one is scrolled, and no formula is typeset in it."""
        lines = html.escape(plain(self._shown()).rstrip("\n"))
        return f'<pre style="overflow-x:auto">{lines}</pre>'

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """Return the value in each format of a notebook (IPython calls this)."""
        return {"text/plain": plain(self._shown()).rstrip("\n"), "text/html": self._html()}


class ShownText(Displayed, str):
    """Text of a log, a script or a report; a notebook shows its lines instead of a literal."""


def image(caption: str, png: bytes) -> str:
    """Return an image as HTML."""
    data = base64.b64encode(png).decode()
    text = html.escape(plain(caption))
    return f'<img alt="{text}" src="data:image/png;base64,{data}" style="max-width:100%">'


def shown_path(path: Path) -> str:
    """Return a path below the current folder without it: a notebook is read elsewhere."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
