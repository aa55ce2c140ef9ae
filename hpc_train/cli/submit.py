"""`hpctrain submit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hpc_train.cli.options import job_options, prepare_and_warn, results_option


@click.command()
@job_options
@results_option
@click.option("--wait", is_flag=True, help="Follow the runs to their end.")
@click.option("--dry-run", is_flag=True, help="Print the scripts and submit nothing.")
@click.option("--rerun-failed", is_flag=True, help="Run the study's failed runs once more, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the run ids as JSON.")
def submit(
    file: Path,
    arguments: tuple[str, ...],
    site: str | None,
    results: Path | None,
    wait: bool,
    dry_run: bool,
    rerun_failed: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Submit a job, a study or a script.

    FILE is a job or study in YAML, or a program; its arguments follow after `--`. The runs go on
    when the shell is closed. Of a study, only what is missing is run.
    """
    from hpc_train.cli.follow import follow
    from hpc_train.cli.render import echo_scripts
    from hpc_train.pipeline.submit import submit as submit_prepared
    from hpc_train.runs.store import results_root

    prepared = prepare_and_warn(file, arguments, site, given)
    if dry_run:
        echo_scripts(prepared)
        return
    root = results_root(results)
    done = submit_prepared(prepared, root, sys.argv, rerun_failed=rerun_failed)
    _announce(done, prepared.study is not None, as_json)
    if wait:
        known = {run.folder.run_id: run.state for run in done.kept}
        sys.exit(follow(done.home, {run.run_id for run in done.new} | set(known), known))


def _announce(done: Any, is_study: bool, as_json: bool) -> None:
    if as_json:
        import msgspec

        answer = {
            "folder": str(done.home),
            "new": [run.run_id for run in done.new],
            "kept": {run.folder.run_id: run.state.value for run in done.kept},
        }
        click.echo(msgspec.json.encode(answer).decode())
        return
    for run in done.new:
        click.echo(run.run_id)
    failed = sum(run.state.finished and run.state.value != "COMPLETED" for run in done.kept)
    if is_study:
        text = f"{done.home}: {len(done.new)} runs submitted, {len(done.kept)} were there"
        again = f", {failed} of them failed (--rerun-failed runs them again)" if failed else ""
        click.echo(text + again, err=True)
    word = done.home.name if is_study else done.new[0].run_id
    click.echo(f"next: hpctrain status {word}", err=True)
