"""`hpctrain retry`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hpc_train.cli.complete import runs
from hpc_train.cli.options import results_option


@click.command()
@click.argument("word", metavar="RUN|STUDY", shell_complete=runs)
@results_option
@click.option("--wait", is_flag=True, help="Follow the runs to their end.")
@click.option("--max-gpu-hours", type=float, help="Refuse a submission that may cost more.")
@click.option("--exclude-failed-nodes", is_flag=True, help="Exclude the nodes that failed before.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the job; not in a study.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the run ids as JSON.")
def retry(
    word: str,
    results: Path,
    wait: bool,
    max_gpu_hours: float | None,
    exclude_failed_nodes: bool,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Resubmit the runs that failed, were lost or were cancelled.

    The scripts are taken unchanged from the run folders, unless --set changes the job. Each
    attempt has a new folder.
    """
    from hpc_train.cli.output import busy, say, show_warnings
    from hpc_train.cli.submit import announce, wait_for
    from hpc_train.runs.run_states import folder_of
    from hpc_train.submissions.retry import retry as retry_runs

    show_warnings()
    with busy("submitting"):
        done = retry_runs(
            folder_of(word, results),
            sys.argv,
            say,
            exclude_failed_nodes=exclude_failed_nodes,
            max_gpu_hours=max_gpu_hours,
            settings=settings,
        )
    announce(done, as_json=as_json)
    if wait:
        wait_for(done)
