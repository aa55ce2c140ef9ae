"""The progress bar of `--wait`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hpc_train.model.run import Run
from hpc_train.model.submission import JobState


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[Sequence[Run]], None]]:
    """Show how many runs have finished and which one runs now."""
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
