"""`hpctrain submit`."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
import msgspec

from hpc_train.base.extras import is_installed
from hpc_train.base.plain_text import plain
from hpc_train.cli.job_command import JobCommand
from hpc_train.cli.options import job_options, prepare_and_warn, results_option
from hpc_train.cli.output import busy, say, show_warnings
from hpc_train.runs.json_files import default_results
from hpc_train.runs.run import RunName

if TYPE_CHECKING:
    from hpc_train.scripts.prepare import Prepared
    from hpc_train.submissions.submit import Submitted


@click.command(cls=JobCommand)
@job_options
@results_option
@click.option("--wait", is_flag=True, help="Follow the runs to their end.")
@click.option("--dry-run", is_flag=True, help="Print the scripts and submit nothing.")
@click.option("--max-gpu-hours", type=float, help="Refuse a submission that may cost more.")
@click.option("--rerun-failed", is_flag=True, help="Also rerun the study's failed runs.")
@click.option("--json", "as_json", is_flag=True, help="Print the run ids as JSON.")
def submit(
    file: Path,
    arguments: tuple[str, ...],
    site: str | None,
    results: Path,
    wait: bool,
    dry_run: bool,
    max_gpu_hours: float | None,
    rerun_failed: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Submit a job, a study or a script.

    FILE is a job or study in YAML, or a program; its arguments follow after `--`. The runs continue
    when the shell is closed. Only the missing runs of a study are submitted.
    """
    prepared = prepare_and_warn(file, arguments, site, given, starts=True)
    if dry_run:
        _dry_run(prepared, results, max_gpu_hours)
        return
    done = start(prepared, results, rerun_failed=rerun_failed, max_gpu_hours=max_gpu_hours)
    announce(done, as_json=as_json)
    if wait:
        wait_for(done)


def start(prepared: Prepared, results: Path, **options: Any) -> Submitted:
    """Submit what was prepared; print the warnings of all stages on stderr."""
    from hpc_train.submissions.submit import submit as submit_prepared

    show_warnings()
    with busy("submitting"):
        return submit_prepared(prepared, results, sys.argv, say, **options)


def _dry_run(prepared: Prepared, results: Path, max_gpu_hours: float | None) -> None:
    """Print the scripts, and on stderr the messages of a submission and the output of sbatch."""
    from hpc_train.cli.render import echo_scripts
    from hpc_train.submissions.submit import dry_run

    # A script that would be refused is no answer.
    answers = [*dry_run(prepared, results, max_gpu_hours)]
    echo_scripts(prepared)
    for text in answers:
        say(text)


def wait_for(done: Submitted) -> NoReturn:
    """Follow the submitted runs to their end, print the next command, and exit."""
    from hpc_train.cli.follow_runs import follow

    code, line = follow(done.home, done), ""
    # A login node may have the core alone.
    if code != 1 and is_installed("report"):
        from hpc_train.reports.build import headline

        paths = [done.home] if _is_study(done) else [run.path for run in done.new]
        usual = done.home.parent == default_results()
        words = [str(path.relative_to(done.home.parent) if usual else path) for path in paths]
        for line in headline(words, done.home.parent):
            click.echo(plain(line), err=True)
    if code == 0 and _is_study(done) and not line.startswith("next: "):
        click.echo(f"next: hpctrain report {_typed(done.home, done)}", err=True)
    sys.exit(code)


def announce(done: Submitted, *, as_json: bool) -> None:
    """Print the new run ids, and on stderr the existing runs and the next command."""
    if as_json:
        answer = {
            "folder": str(done.home),
            "new": [run.run_id for run in done.new],
            "kept": {run.folder.run_id: run.state.value for run in done.kept},
        }
        click.echo(msgspec.json.encode(answer).decode())
        return
    for run in done.new:
        click.echo(run.run_id)
    if _is_study(done):
        click.echo(_summary(done), err=True)
    path = done.new[0].path if len(done.new) == 1 and not done.kept else done.home
    anew = "" if done.new else "; --set name=NAME submits all runs again, as another study"
    click.echo(f"next: hpctrain status {_typed(path, done)}{anew}", err=True)


def _is_study(done: Submitted) -> bool:
    return (done.home / "study.json").exists()


def _typed(path: Path, done: Submitted) -> str:
    """Return the argument that selects a run or a study on the command line, from this folder."""
    return path.name if done.home.parent == default_results() else shlex.quote(str(path))


def _summary(done: Submitted) -> str:
    states = Counter(run.state for run in done.kept)
    failed = sum(n for state, n in states.items() if state.finished and state.value != "COMPLETED")
    unknown = sum(n for state, n in states.items() if state.value == "UNKNOWN")
    new, kept = len(done.new), len(done.kept)
    text = f"{done.home}: {new} run{'s' * (new != 1)} submitted, "
    text += f"{kept} {'exists' if kept == 1 else 'exist'} already"
    if failed:
        text += f", {failed} of them failed (--rerun-failed runs them again)"
    older = sum(1 for _ in done.home.glob("*/run.json")) - new - kept
    is_retry = any((name := RunName.parse(run.run_id)) and name.attempt > 1 for run in done.new)
    if older > 0 and not is_retry:
        text += f"; {older} older runs of another job stay beside them (--name NAME keeps apart)"
    if unknown:
        text += f", {unknown} of them not submitted again, because their state is unknown"
    return text
