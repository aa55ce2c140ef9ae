"""`hpctrain status`, `logs`, `cancel` and `retry`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpc_train.base.errors import StoreError
from hpc_train.base.plain_text import shown as shown_text
from hpc_train.cli.options import results_option, runs
from hpc_train.cli.output import busy, echo_table, say, show_warnings
from hpc_train.runs.run import Run

if TYPE_CHECKING:
    from hpc_train.runs.run_states import RunStates
    from hpc_train.submissions.follow_logs import RunLogs

# A run id begins with one.
_DATE = len("20261231")
_LOG_PAUSE_S = 0.3


@click.command()
@click.argument("words", metavar="[RUN|STUDY]", nargs=-1, shell_complete=runs)
@results_option
@click.option("--watch", is_flag=True, help="Continue until all runs have finished.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colours of states; auto: on a terminal without NO_COLOR.",
)
def status(words: tuple[str, ...], results: Path, watch: bool, as_json: bool, color: str) -> None:
    """Print the state of one run, of the runs of a job or study, or of all runs."""
    from hpc_train.cli.follow_runs import follow, print_next_step, print_unmeasured
    from hpc_train.runs.run_folders import find
    from hpc_train.runs.run_states import states

    show_warnings()
    click.get_current_context().color = {"always": True, "never": False}.get(color)
    if watch and any(word.isdigit() and len(word) < _DATE for word in words):
        hint = "hpctrain status NAME --watch"
        raise StoreError("--watch takes no number: it prints each change when it comes", hint)
    if len(words) > 1:
        raise StoreError(
            f"{words[1]}: status takes one run or study", f"hpctrain status {words[1]}"
        )
    word = words[0] if words else None
    if watch and as_json:
        raise StoreError("--watch redraws a table, --json prints once", "use one of them")
    if watch:
        if word is None:
            raise StoreError("--watch follows one run, job or study", "hpctrain status lists them")
        follow(find(results, word))
        return None
    with busy("reading runs"):
        found = states(results, word)
    if as_json:
        _print_json(found)
    elif word:
        home, (runs, missing) = next(iter(found.items()))
        _print_runs(runs, missing)
        print_unmeasured(home, runs)
        print_next_step(home, runs)
    else:
        _print_folders(found, results)
    return None


def _print_json(found: dict[Path, RunStates]) -> None:

    from hpc_train.diagnosis.diagnose_runs import causes
    from hpc_train.runs.run_table import row

    runs = [run for one in found.values() for run in one.runs]
    why = causes(runs)
    rows = [row(run, why) for run in runs]
    missing = [name for one in found.values() for name in one.missing]
    click.echo(msgspec.json.encode({"schema": 1, "runs": rows, "missing": missing}))


def _print_runs(runs: tuple[Run, ...], missing: tuple[str, ...]) -> None:
    from hpc_train.cli.follow_runs import log_tail
    from hpc_train.diagnosis.diagnose_runs import causes
    from hpc_train.runs.run_table import HEADS, RESTART_HEADS, counts, restart_rows, rows

    click.echo(counts(runs, missing))
    echo_table(HEADS, rows(runs, missing, causes(runs)))
    if len(runs) == 1 and runs[0].starts:
        click.echo()
        echo_table(RESTART_HEADS, restart_rows(runs[0].starts))
    if len(runs) == 1 and runs[0].state.value == "FAILED":
        click.echo("\n".join(log_tail(runs[0])))


def _print_folders(found: dict[Path, RunStates], root: Path) -> None:
    from hpc_train.runs.run_table import counts

    if not found:
        click.echo(f"no runs below {root}; start with: hpctrain submit FILE", err=True)
        return
    rows = [
        (folder.name, str(len(one.runs)), "; ".join((counts(one.runs, one.missing), *_newer(one))))
        for folder, one in found.items()
    ]
    echo_table(("name", "runs", "states"), rows)


def _newer(found: RunStates) -> list[str]:
    """Return why the states of some runs are not known."""
    return [f"{run.folder.run_id}/{run.problem}" for run in found.runs if run.newer][:1]


@click.command()
@click.argument("run", shell_complete=runs)
@results_option
@click.option("-f", "--follow", is_flag=True, help="Continue until the run has finished.")
@click.option("--rank", type=int, help="Only this rank.")
@click.option("-n", "--lines", type=click.IntRange(min=1), help="Only the last lines of each log.")
def logs(run: str, results: Path, follow: bool, rank: int | None, lines: int | None) -> None:
    """Print a run's logs, rank by rank; those of a failed run begin with the rank that failed."""
    from hpc_train.submissions.follow_logs import RunLogs

    run_logs = RunLogs(run, results, rank=rank, lines=lines)
    if run_logs.empty and not follow:
        raise run_logs.no_log(run)
    if run_logs.first_rank is not None:
        say(f"rank {run_logs.first_rank} failed first; its log comes first (--rank N prints one)")
    shown, last = "", None
    while True:
        shown = _print_new(run_logs, shown)
        if not follow or (last is not None and last.state.finished):
            break
        last = run_logs.run()
        time.sleep(_LOG_PAUSE_S)
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


@click.command()
@click.argument("word", metavar="RUN|STUDY", shell_complete=runs)
@results_option
def cancel(word: str, results: Path) -> None:
    """Cancel the unfinished runs of a job or study."""
    from hpc_train.runs.run_folders import find
    from hpc_train.runs.run_states import cancel as cancel_runs

    with busy("ending runs"):
        done = cancel_runs(find(results, word))
    for run in done.runs:
        click.echo(f"CANCELLED  {run.folder.run_id}")
    for run in done.unknown_jobs:
        click.echo(f"UNKNOWN    {run.folder.run_id}  not cancelled: {run.problem}", err=True)
    if done.unknown_jobs:
        click.echo(f"  repeat in a minute: hpctrain cancel {word}", err=True)
        sys.exit(3)


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
    from hpc_train.cli.submit import announce, wait_for
    from hpc_train.runs.run_folders import find
    from hpc_train.submissions.retry import retry as retry_runs

    show_warnings()
    with busy("submitting"):
        done = retry_runs(
            find(results, word),
            sys.argv,
            say,
            exclude_failed_nodes=exclude_failed_nodes,
            max_gpu_hours=max_gpu_hours,
            settings=settings,
        )
    announce(done, as_json=as_json)
    if wait:
        wait_for(done)
