"""Live displays on a terminal: the bar of `--wait`, the table of `status --watch`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hpc_train.cli.output import table
from hpc_train.cli.run_table import HEADS, counts, rows, why
from hpc_train.model.run import Run
from hpc_train.model.submission import JobState


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[Sequence[Run]], None]]:
    """Show how many runs have finished and which one is running."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        def show(runs: Sequence[Run]) -> None:
            running = [run.folder.run_id for run in runs if run.state is JobState.RUNNING]
            done = sum(run.state.finished for run in runs)
            progress.update(task, completed=done, description=", ".join(running) or "waiting")

        yield show


@contextmanager
def live_table(stream: IO[str]) -> Iterator[Callable[[Sequence[Run]], None]]:
    """Show runs as a table that is redrawn; without a terminal, one line per change."""
    if not stream.isatty():
        yield _changes()
        return
    with Live(console=Console(file=stream), auto_refresh=False) as live:

        def show(runs: Sequence[Run]) -> None:
            live.update(Group(counts(runs), table(HEADS, rows(runs))), refresh=True)

        yield show


def _changes() -> Callable[[Sequence[Run]], None]:
    shown: dict[str, tuple[JobState, str]] = {}

    def show(runs: Sequence[Run]) -> None:
        for run in runs:
            state = (run.state, why(run))
            if shown.get(run.folder.run_id) != state:
                shown[run.folder.run_id] = state
                click.echo(f"{run.state.value:9}  {run.folder.run_id}  {state[1]}".rstrip())

    return show
