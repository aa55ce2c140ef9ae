"""Follow runs: a table that is redrawn on a terminal, a line for each change elsewhere."""

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
    from hpc_train.submissions.submit import Submitted

_PAUSE_S = 0.3
# The last measurement is read so often on a terminal, and elsewhere.
_SHOWN_S, _PRINTED_S = 2.0, 30.0
# Of more runs a terminal shows those that have not finished, as far as they fit.
_ROWS = 20
_Told = dict[str, tuple[JobState, str]]


def follow(home: Path, done: Submitted | None = None) -> int:
    """Show the runs of a folder until they have finished; return the exit code.

    Of a submission only its runs are shown, on stderr: no states that are known, nor runs that
    wait. Ctrl-C ends the command, not the runs.
    """
    from hpc_train.runs.run_states import Watch
    from hpc_train.submissions.last_measurement import RunProgress

    err = done is not None
    stream = sys.stderr if err else sys.stdout
    on_terminal = stream.isatty()
    progress = RunProgress(_SHOWN_S if on_terminal else _PRINTED_S)
    watch = Watch(home)
    told: _Told = {run.folder.run_id: (run.state, "") for run in done.kept} if done else {}
    run_ids = {run.run_id for run in done.new} | set(told) if done else set()
    is_first = True
    try:
        with live_table(stream) as show:
            while True:
                runs = [run for run in watch.runs() if not run_ids or run.folder.run_id in run_ids]
                measured = progress.texts(runs)
                show(runs, measured)
                for run in runs:
                    if not (err and run.state is JobState.PENDING):
                        for line in _news(run, measured, told, on_terminal):
                            click.echo(plain(line), err=err)
                if is_first and any(run.state is JobState.COMPLETED for run in runs):
                    is_first = False
                    print_unmeasured(home, runs)
                if all(run.state.finished or run.newer for run in runs):
                    break
                time.sleep(watch.pause_s(_PAUSE_S))
    except KeyboardInterrupt:
        click.echo(
            f"\nthe runs continue; hpctrain status {home.name}, or cancel {home.name}", err=True
        )
        return 130
    print_next_step(home, runs)
    completed = sum(run.state is JobState.COMPLETED for run in runs)
    return 0 if completed == len(runs) else 3 if completed else 1


def _news(run: Run, measured: Mapping[str, str], told: _Told, on_terminal: bool) -> Iterator[str]:
    """Yield the state of a run if it or the measurement is new, and how a run ended.

    A terminal has a table of states, and is told failures only.
    """
    from hpc_train.diagnosis.diagnose_runs import causes
    from hpc_train.nccl.transport import run_network, run_transport, transport_warnings

    name, state = run.folder.run_id, run.state
    before, words = told.get(name, (None, ""))
    if before is state and state.finished:
        return
    reason = explained(run, causes([run]) if state.finished else {})
    text = "; ".join(filter(None, (reason, measured.get(name, ""))))
    if (before, words) == (state, text):
        return
    told[name] = (state, text)
    if not on_terminal or (state.finished and state is not JobState.COMPLETED):
        yield f"{state.value:9}  {name}  {text}".rstrip()
    if state is JobState.FAILED:
        yield from (f"    {line}" for line in log_tail(run))
    if state.finished:
        yield from (
            f"    {text}" for text in transport_warnings(run_transport(run, run_network(run)))
        )


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
def live_table(stream: IO[str]) -> Iterator[Callable[[Sequence[Run], Mapping[str, str]], None]]:
    """Show runs, and what they measured last by run id, on a terminal; nothing elsewhere."""
    if not stream.isatty():
        yield lambda runs, measured: None
        return
    from rich.console import Console, Group, RenderableType
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(file=stream), auto_refresh=False) as live:

        def show(runs: Sequence[Run], measured: Mapping[str, str]) -> None:
            few = runs if len(runs) <= _ROWS else [run for run in runs if not run.state.finished]
            shown: list[RenderableType] = [counts(runs), table(HEADS, rows(few[:_ROWS]))]
            # The table above has the name of a single run.
            names = [f"{name}: " if len(runs) > 1 else "progress: " for name in measured]
            lines = map(str.__add__, names, measured.values())
            shown += [*[""] * bool(measured), *(Text(plain(line)) for line in lines)]
            live.update(Group(*shown), refresh=True)

        yield show
