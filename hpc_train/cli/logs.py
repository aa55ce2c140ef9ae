"""`hpctrain logs`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.base.plain_text import shown as shown_text
from hpc_train.cli.complete import runs
from hpc_train.cli.options import results_option

if TYPE_CHECKING:
    from hpc_train.submissions.follow_logs import RunLogs

_PAUSE_S = 0.3


@click.command()
@click.argument("run", shell_complete=runs)
@results_option
@click.option("-f", "--follow", is_flag=True, help="Continue until the run has finished.")
@click.option("--rank", type=int, help="Only this rank.")
@click.option("-n", "--lines", type=click.IntRange(min=1), help="Only the last lines of each log.")
def logs(run: str, results: Path, follow: bool, rank: int | None, lines: int | None) -> None:
    """Print a run's logs, rank by rank; those of a failed run begin with the rank that failed."""
    from hpc_train.cli.output import say
    from hpc_train.submissions.follow_logs import RunLogs

    run_logs = RunLogs(run, results, rank=rank, lines=lines)
    if links := run_logs.unread:
        more = f" and {len(links) - 1} more" if len(links) > 1 else ""
        say(f"not read, because it is a link that leads out of the run folder: {links[0]}{more}")
    if run_logs.empty and not follow:
        raise run_logs.no_log(run)
    if run_logs.first_rank is not None:
        say(f"rank {run_logs.first_rank} failed first; its log stands first (--rank N prints one)")
    shown, last = "", None
    while True:
        shown = _print_new(run_logs, shown)
        if not follow or (last is not None and last.state.finished):
            break
        last = run_logs.run()
        time.sleep(_PAUSE_S)
    if last is not None and run_logs.empty:
        raise run_logs.no_log(run)


def _print_new(run_logs: RunLogs, shown: str) -> str:
    """Print the new lines of each log below its name; return the last name."""
    for name, fresh in run_logs.new_bytes():
        if shown != name:
            click.echo(f"==> {shown_text(name)} <==")
        click.echo(
            shown_text(fresh.decode("utf-8", errors="replace")), nl=not fresh.endswith(b"\n")
        )
        shown = name
    return shown
