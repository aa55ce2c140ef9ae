"""Follow runs: a progress bar or a table on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from hpc_train.base.extras import is_installed
from hpc_train.base.plain_text import plain
from hpc_train.cli.output import table, tail
from hpc_train.runs.run import JobState, Run
from hpc_train.runs.run_table import HEADS, counts, explained, rows

if TYPE_CHECKING:
    from rich.console import RenderableType


_PAUSE_S = 0.3
# The last measurement is read so often on a terminal, and elsewhere.
SHOWN_S, PRINTED_S = 2.0, 30.0
Show = Callable[[Sequence[Run], Mapping[str, str]], None]


def follow(home: Path, run_ids: set[str], known: Mapping[str, JobState]) -> int:
    """Wait until all these runs have finished; return the exit code of the command.

    States in `known` are not printed again. Ctrl-C ends the command, not the runs.
    """
    from hpc_train.runs.run_states import Watch
    from hpc_train.submissions.last_measurement import RunProgress

    states = dict(known)
    on_terminal = sys.stderr.isatty()
    progress = RunProgress(SHOWN_S if on_terminal else PRINTED_S)
    watch = Watch(home)
    try:
        with _progress_bar(len(run_ids)) as show:
            is_first = True
            while True:
                runs = [run for run in watch.runs() if run.folder.run_id in run_ids]
                line = progress.line([run for run in runs if run.state is JobState.RUNNING])
                show(runs, line)
                if line and not on_terminal:
                    click.echo(plain(f"RUNNING    {line}"), err=True)
                for run in runs:
                    _print_change(run, states)
                if is_first and any(run.state is JobState.COMPLETED for run in runs):
                    is_first = False
                    print_unmeasured(home, runs)
                if all(run.state.finished for run in runs):
                    break
                time.sleep(watch.pause_s(_PAUSE_S))
    except KeyboardInterrupt:
        click.echo(
            f"\nthe runs continue; hpctrain status {home.name}, or cancel {home.name}", err=True
        )
        return 130
    print_next_step(home, runs)
    return _exit_code(runs)


def print_next_step(home: Path, runs: Sequence[Run]) -> None:
    """Print the command that explains the failures, if there are any."""
    from hpc_train.diagnosis.diagnose_runs import next_step

    if step := next_step(runs, home):
        click.echo(step, err=True)


def print_unmeasured(home: Path, runs: Sequence[Run]) -> None:
    """Say if the first run that ended well printed nothing that a report can use."""
    # A login node may have the core alone, which reads no logs.
    if not is_installed("report"):
        return
    from hpc_train.submissions.last_measurement import unmeasured

    for line in unmeasured(home, runs):
        click.echo(plain(line), err=True)


def _exit_code(runs: Sequence[Run]) -> int:
    ok = sum(run.state is JobState.COMPLETED for run in runs)
    if ok == len(runs):
        return 0
    return 3 if ok else 1


def _print_change(run: Run, states: dict[str, JobState]) -> None:
    """Print the end of a run, the last lines of a failed rank, and findings on the network."""
    from hpc_train.diagnosis.diagnose_runs import causes
    from hpc_train.nccl.transport import run_transport, transport_warnings

    before = states.get(run.folder.run_id)
    states[run.folder.run_id] = run.state
    if before is run.state or run.state is JobState.PENDING:
        return
    if not sys.stderr.isatty() or (run.state.finished and run.state is not JobState.COMPLETED):
        reason = explained(run, causes([run]))
        problem = f"  {reason}" if reason else ""
        click.echo(plain(f"{run.state.value:9}  {run.folder.run_id}{problem}"), err=True)
    if run.state is JobState.FAILED:
        for line in log_tail(run):
            click.echo(f"    {line}", err=True)
    if run.state.finished:
        for text in transport_warnings(run_transport(run)):
            click.echo(f"    {text}", err=True)


def log_tail(run: Run, lines: int = 8) -> list[str]:
    """Return the last lines of the rank that failed first, or of the job script."""
    failure = run.status.failure if run.status else None
    names = ["job.out"] if failure is None else ["node-0.out", "job.out"]
    if failure is not None and failure.rank is not None:
        names.insert(0, f"rank-{failure.rank}.out")
    logs = [(name, run.folder.logs / name) for name in names]
    if failure is not None:
        # A program that forks its ranks has one log per node.
        name = failure.host if failure.rank is None else names[0]
        logs.insert(0, (name, run.folder.path / "first_failure.log"))
    for name, log in logs:
        tail_lines = tail(log, lines)
        if tail_lines:
            return [f"{plain(name)}: {word}" for word in tail_lines]
    return []


@contextmanager
def _progress_bar(total: int) -> Iterator[Callable[[Sequence[Run], str], None]]:
    """Show how many runs have finished, which one is running, and its last measurement.

    Without a terminal nothing is shown.
    """
    if not sys.stderr.isatty():
        yield lambda runs, line: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        measured = ""

        def show(runs: Sequence[Run], line: str) -> None:
            nonlocal measured
            measured = line or measured
            running = [run.folder.run_id for run in runs if run.state is JobState.RUNNING]
            done = sum(run.state.finished for run in runs)
            is_current = bool(running) and measured.startswith(f"{running[0]}  ")
            shown = measured if is_current else ", ".join(running)
            if is_current and total == 1:
                shown = measured.removeprefix(f"{running[0]}  ")
            progress.update(task, completed=done, description=plain(shown) or "waiting")

        yield show


@contextmanager
def live_table(stream: IO[str]) -> Iterator[Show]:
    """Show runs, and what they measured last by run id, as a table that is redrawn.

    Without a terminal, one line per change, and at most every 30 s the last measurement.
    """
    if not stream.isatty():
        yield _changes(stream)
        return
    from rich.console import Console, Group
    from rich.live import Live

    with Live(console=Console(file=stream), auto_refresh=False) as live:

        def show(runs: Sequence[Run], measured: Mapping[str, str]) -> None:
            shown = (counts(runs), table(HEADS, rows(runs)), *_progress(runs, measured))
            live.update(Group(*shown), refresh=True)

        yield show


def _progress(runs: Sequence[Run], measured: Mapping[str, str]) -> Iterator[RenderableType]:
    """Yield what runs measured: of a single run without its id, which the table above has."""
    from rich.text import Text

    if not measured:
        return
    yield ""
    if len(runs) == 1:
        yield from (Text(plain(f"progress: {text}")) for text in measured.values())
    else:
        yield table(("run", "progress"), [(name, plain(text)) for name, text in measured.items()])


def _changes(stream: IO[str]) -> Show:
    shown: dict[str, tuple[JobState, str]] = {}

    def show(runs: Sequence[Run], measured: Mapping[str, str]) -> None:
        for run in runs:
            words = (explained(run, {}), measured.get(run.folder.run_id, ""))
            state = (run.state, "; ".join(filter(None, words)))
            if shown.get(run.folder.run_id) != state:
                shown[run.folder.run_id] = state
                line = f"{run.state.value:9}  {run.folder.run_id}  {state[1]}".rstrip()
                click.echo(plain(line), file=stream)

    return show
