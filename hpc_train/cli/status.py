"""`hpctrain status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hpc_train.cli.options import results_option
from hpc_train.model.run import Run


@click.command()
@click.argument("word", metavar="[RUN|STUDY]", required=False)
@results_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(word: str | None, results: Path | None, as_json: bool) -> None:
    """Print how runs stand: of one run, of a job or study, or of all."""
    from hpc_train.pipeline.query import runs_below
    from hpc_train.runs.store import find, homes, results_root

    root = results_root(results)
    folders = [find(root, word)] if word else list(homes(root))
    found = {folder: runs_below(folder) for folder in folders}
    if as_json:
        import msgspec

        rows = [_row(run) for runs in found.values() for run in runs]
        click.echo(msgspec.json.encode({"schema": 1, "runs": rows}))
    elif word:
        _print_runs(found[folders[0]])
    else:
        _print_folders(found, root)


def _row(run: Run) -> dict[str, Any]:
    manifest, times = run.manifest, run.status
    return {
        "run": run.folder.run_id,
        "folder": str(run.folder.path),
        "state": run.state.value,
        "problem": run.problem,
        "axes": manifest.axes if manifest else None,
        "repetition": manifest.repetition if manifest else None,
        "started": times.started if times else None,
        "ended": times.ended if times else None,
        "exit_code": times.exit_code if times else None,
    }


def _print_runs(runs: Sequence[Run]) -> None:
    from hpc_train.cli.follow import last_words
    from hpc_train.cli.output import echo_table

    counts = Counter(run.state.value for run in runs)
    click.echo(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    rows = [(run.folder.run_id, run.state.value, _seconds(run), run.problem) for run in runs]
    echo_table(("run", "state", "time", "problem"), rows)
    if len(runs) == 1 and runs[0].state.value == "FAILED":
        click.echo("\n".join(last_words(runs[0])))


def _seconds(run: Run) -> str:
    times = run.status
    return f"{times.ended - times.started:.1f} s" if times and times.ended else "--"


def _print_folders(found: dict[Path, tuple[Run, ...]], root: Path) -> None:
    from hpc_train.cli.output import echo_table

    if not found:
        click.echo(f"no runs below {root}; start with: hpctrain submit FILE", err=True)
        return
    rows = []
    for folder, runs in found.items():
        counts = Counter(run.state.value for run in runs)
        text = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        rows.append((folder.name, str(len(runs)), text))
    echo_table(("name", "runs", "states"), rows)
