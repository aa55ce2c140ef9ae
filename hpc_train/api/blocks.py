"""How a notebook shows a value: text and HTML at once; a cell that is updated."""

from __future__ import annotations

import base64
import html
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import NamedTuple

from hpc_train.base.plain_text import plain


class Displayed(ABC):
    """A value that a notebook shows as text or HTML, whichever it prefers."""

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


class Title(NamedTuple):
    """The first line."""

    text: str


class Sentences(NamedTuple):
    """Lines of prose, below a heading if there is one."""

    lines: Sequence[str]
    heading: str = ""


class Rows(NamedTuple):
    """A table; `right` are the numbers of the columns that are aligned to the right."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    heading: str = ""
    right: frozenset[int] = frozenset()


class Verbatim(NamedTuple):
    """Text of a log or script, unchanged."""

    text: str


class Picture(NamedTuple):
    """An image as PNG."""

    caption: str
    png: bytes


Block = Title | Sentences | Rows | Verbatim | Picture
_HEAD = "font-weight:bold;margin:0.6em 0 0.2em 0"
_CELL = "padding:0.2em 0.8em 0.2em 0;vertical-align:top;text-align"


def as_bundle(blocks: Sequence[Block]) -> dict[str, str]:
    """Return blocks in each format of a notebook, by its media type."""
    return {
        "text/plain": as_text(blocks),
        "text/html": as_html(blocks),
    }


def as_text(blocks: Sequence[Block]) -> str:
    """Return blocks as plain text, without control characters."""
    return "\n\n".join(filter(None, map(_text, blocks)))


def as_html(blocks: Sequence[Block]) -> str:
    """Return blocks as a fragment of HTML with inline styles, without scripts and formulas."""
    inner = "".join(map(_html, blocks))
    return f'<div class="tex2jax_ignore mathjax_ignore">{inner}</div>'


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())


def _text(block: Block) -> str:
    match block:
        case Title():
            return _one_line(block.text)
        case Verbatim():
            return plain(block.text).rstrip("\n")
        case Picture():
            return f"[figure: {_one_line(block.caption)}]"
        case Sentences():
            lines = [_one_line(line) for line in block.lines]
            return "\n".join(_below(block.heading, lines))
        case Rows():
            return "\n".join(_below(block.heading, _aligned(block)))


def _below(heading: str, lines: Sequence[str]) -> list[str]:
    return [*([_one_line(heading)] if heading and lines else []), *lines]


def _aligned(table: Rows) -> list[str]:
    rows = [[_one_line(cell) for cell in row] for row in (table.heads, *table.rows)]
    if not table.rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_padded(row, widths, table.right)).rstrip() for row in rows if any(row)]


def _padded(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    cells = enumerate(zip(row, widths, strict=True))
    return [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in cells]


def _html(block: Block) -> str:
    match block:
        case Title():
            return f'<div style="font-weight:bold">{_safe(block.text)}</div>'
        case Verbatim():
            text = html.escape(plain(block.text).rstrip("\n"))
            return f'<pre style="overflow-x:auto">{text}</pre>'
        case Picture():
            return f'<img alt="{_safe(block.caption)}" src="{_data(block)}" style="max-width:100%">'
        case Sentences():
            lines = "".join(f"<div>{_safe(line)}</div>" for line in block.lines)
            return _heading(block.heading) * bool(lines) + lines
        case Rows():
            return _heading(block.heading) * bool(block.rows) + _html_table(block)


def _html_table(table: Rows) -> str:
    if not table.rows:
        return ""
    sides = ["right" if i in table.right else "left" for i in range(len(table.heads))]

    def line(tag: str, row: Sequence[str]) -> str:
        cells = zip(row, sides, strict=True)
        return "".join(
            f'<{tag} style="{_CELL}:{side}">{_safe(cell)}</{tag}>' for cell, side in cells
        )

    heads = f"<thead><tr>{line('th', table.heads)}</tr></thead>" if any(table.heads) else ""
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in table.rows)
    return f'<table style="border-collapse:collapse">{heads}<tbody>{body}</tbody></table>'


def _heading(text: str) -> str:
    return f'<div style="{_HEAD}">{_safe(text)}</div>' if text else ""


def _safe(text: str) -> str:
    return html.escape(_one_line(text))


def _data(picture: Picture) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.png).decode()}"
