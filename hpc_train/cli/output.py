"""Tables and endings of logs, as they are printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click


def echo_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: wrapped to a terminal, each row on one line when piped."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout and sys.stdout.isatty() else 10_000, highlight=False)
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(_plain(cell) for cell in row))
    with console.capture() as capture:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _plain(text: str) -> str:
    """Keep rich from reading brackets as markup."""
    return text.replace("[", r"\[")


def tail(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log; whatever bytes it holds."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - 65536))
            text = stream.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]
