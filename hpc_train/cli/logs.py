"""`hpctrain logs`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hpc_train.cli.options import results_option
from hpc_train.errors import StoreError
from hpc_train.model.run import Run
from hpc_train.regularfile import is_regular, open_regular, read_regular

_PAUSE_S = 0.3


@click.command()
@click.argument("run")
@results_option
@click.option("-f", "--follow", is_flag=True, help="Continue until the run has finished.")
@click.option("--rank", type=int, help="Only this rank.")
@click.option("-n", "--lines", type=click.IntRange(min=1), help="Only the last lines of each log.")
def logs(run: str, results: Path | None, follow: bool, rank: int | None, lines: int | None) -> None:
    """Print a run's logs, rank by rank."""
    from hpc_train.pipeline.status import Watch
    from hpc_train.runs.store import find, results_root

    folder = _one_run(find(results_root(results), run))
    offsets = {path: _start(path, lines) for path in _files(folder, rank)}
    watch = Watch(folder)
    if not offsets and not follow:
        raise _nothing(run, watch.runs()[0])
    shown: Path | None = None
    last: Run | None = None
    while True:
        for path in _files(folder, rank):
            shown = _print_new(path, offsets, shown)
        if not follow or (last is not None and last.state.finished):
            break
        last = watch.runs()[0]
        time.sleep(_PAUSE_S)
    if last is not None and not offsets:
        raise _nothing(run, last)


def _nothing(word: str, run: Run) -> StoreError:
    """Report why there is no log: the run has not started, or could not start."""
    if run.state.finished:
        return StoreError(f"{word}: no log; {run.problem or run.state.value}")
    return StoreError(
        f"{word}: no log yet; it is {run.state.value}", f"hpctrain status {word}, or logs -f {word}"
    )


def _one_run(folder: Path) -> Path:
    """Return the run of a run folder, or the only run in a folder."""
    from hpc_train.runs.store import is_run, run_folders

    if is_run(folder):
        return folder
    runs = run_folders(folder)
    if len(runs) != 1:
        names = ", ".join(run.run_id for run in runs[:5]) + (", …" if len(runs) > 5 else "")
        raise StoreError(
            f"{folder.name!r} has {len(runs)} runs; name one run{': ' * bool(names)}{names}",
            f"hpctrain status {folder.name}",
        )
    return runs[0].path


def _files(folder: Path, rank: int | None) -> list[Path]:
    """Return the logs in the order of ranks, the launcher's own first."""
    found = sorted((folder / "logs").glob("*.out"), key=lambda path: (len(path.name), path.name))
    wanted = (path for path in found if rank is None or path.name == f"rank-{rank}.out")
    return [path for path in wanted if is_regular(path)]


def _start(path: Path, lines: int | None) -> int:
    if lines is None:
        return 0
    content = read_regular(path)
    kept = content.splitlines(keepends=True)[-lines:]
    return len(content) - sum(map(len, kept))


def _print_new(path: Path, offsets: dict[Path, int], shown: Path | None) -> Path | None:
    with open_regular(path) as stream:
        stream.seek(offsets.get(path, 0))
        fresh = stream.read()
    if not fresh:
        return shown
    if shown != path:
        click.echo(f"==> {path.name} <==")
    click.echo(fresh.decode("utf-8", errors="replace"), nl=not fresh.endswith(b"\n"))
    offsets[path] = offsets.get(path, 0) + len(fresh)
    return path
