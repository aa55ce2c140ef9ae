"""`hpctrain cancel`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hpc_train.cli.complete import runs
from hpc_train.cli.options import results_option


@click.command()
@click.argument("word", metavar="RUN|STUDY", shell_complete=runs)
@results_option
def cancel(word: str, results: Path) -> None:
    """Cancel the unfinished runs of a job or study."""
    from hpc_train.cli.output import busy
    from hpc_train.runs.run_states import cancel as cancel_runs
    from hpc_train.runs.run_states import folder_of

    with busy("ending runs"):
        done = cancel_runs(folder_of(word, results))
    for run in done.runs:
        click.echo(f"CANCELLED  {run.folder.run_id}")
    for run in done.unknown_jobs:
        click.echo(f"UNKNOWN    {run.folder.run_id}  not cancelled: {run.problem}", err=True)
    if done.unknown_jobs:
        click.echo(f"  repeat in a minute: hpctrain cancel {word}", err=True)
        sys.exit(3)
