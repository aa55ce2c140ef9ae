"""`hpctrain cancel`."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train.cli.options import results_option


@click.command()
@click.argument("word", metavar="RUN|STUDY")
@results_option
def cancel(word: str, results: Path | None) -> None:
    """Cancel the unfinished runs of a job or study."""
    from hpc_train.pipeline.query import cancel as cancel_runs
    from hpc_train.runs.store import find, results_root

    for run in cancel_runs(find(results_root(results), word)):
        click.echo(f"CANCELLED  {run.folder.run_id}")
