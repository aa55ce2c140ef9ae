"""Printing of tables, and of the last lines of logs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.base.files import open_regular
from hpc_train.base.plain_text import aligned, plain, shown

if TYPE_CHECKING:
    from rich.table import Table


_COLOURS = {
    "COMPLETED": "green",
    "RUNNING": "cyan",
    **dict.fromkeys(("PENDING", "SUSPENDED", "UNKNOWN", "CANCELLED", "PREEMPTED"), "yellow"),
    **dict.fromkeys(("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "LOST", "MISSING"), "red"),
}


def echo_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: wrapped to a terminal, each row on one line when piped."""
    context = click.get_current_context(silent=True)
    colour = context.color if context else None
    if not (sys.stdout and sys.stdout.isatty()):
        click.echo("\n".join(_lines((heads, *rows))))
        return
    from rich.console import Console

    console = Console(highlight=False, no_color=None if colour is None else not colour)
    with console.capture() as capture:
        console.print(table(heads, rows))
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows with their cells below one another."""
    for cells in aligned(rows):
        # click removes the colours if stdout is no terminal, unless they were asked for.
        yield "  ".join(map(_styled, cells)).rstrip()


def _styled(cell: str) -> str:
    """Return a padded state in its colour, any other cell as it is."""
    state = cell.rstrip()
    colour = _COLOURS.get(state)
    return click.style(state, fg=colour) + cell[len(state) :] if colour else cell


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table without borders."""
    from rich.table import Table
    from rich.text import Text

    result = Table(box=None, pad_edge=False)
    for head in heads:
        result.add_column(head, overflow="fold")
    for row in rows:
        # A state has a colour, which rich drops with NO_COLOR.
        result.add_row(*(Text(plain(cell), _COLOURS.get(cell, "")) for cell in row))
    return result


def tail(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log, which may contain any bytes."""
    try:
        with open_regular(path) as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - 65536))
            text = stream.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return shown(text).splitlines()[-lines:]


def say(text: str) -> None:
    """Print a message on stderr."""
    click.echo(f"{_clear()}{plain(f'hpctrain: {text}')}", err=True)


def _clear() -> str:
    """Return what erases the line of `busy`, which a message may interrupt."""
    return CLEAR if sys.stderr.isatty() else ""


def show_warnings() -> None:
    """Print the warnings that the stages log, such as a scheduler that does not respond."""
    import logging

    start = _clear()

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return start + plain(super().format(record))

    handler = logging.StreamHandler()
    handler.setFormatter(Plain("hpctrain: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


# Start of the line, and deletion up to its end.
CLEAR = "\r\x1b[K"
_AFTER_S = 1.0


@contextmanager
def busy(text: str | Callable[[], str]) -> Iterator[None]:
    """Show on stderr what a command does, and since when, each second from the first one on.

    A function is called each time, so that it can count. Nothing is shown if stderr is not a
    terminal; at the end the line is erased. A signal is used, not a thread: logs are read in
    forked processes.
    """
    if not sys.stderr.isatty():
        yield
        return
    begun = time.monotonic()

    def show(_signal: int, _frame: object) -> None:
        # The handler may interrupt a buffered write.
        now = text if isinstance(text, str) else text()
        line = f"{CLEAR}{plain(now)}, {time.monotonic() - begun:.0f} s"
        os.write(sys.stderr.fileno(), line.encode())

    before = signal.signal(signal.SIGALRM, show)
    signal.setitimer(signal.ITIMER_REAL, _AFTER_S, _AFTER_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if time.monotonic() - begun >= _AFTER_S:
            os.write(sys.stderr.fileno(), CLEAR.encode())
