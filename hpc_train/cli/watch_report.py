"""`hpctrain report --watch`: the report of a study, kept fresh while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.cli.terminal import columns
from hpc_train.errors import StoreError
from hpc_train.plain_text import plain

if TYPE_CHECKING:
    from hpc_train.model.log_selection import Search
    from hpc_train.model.report import Report
    from hpc_train.model.report_options import ReportOptions
    from hpc_train.model.run import Run
    from hpc_train.pipeline.watch_report import Built

DEFAULT_S = 5.0
Show = Callable[[Sequence["Run"], "Report | None"], None]


def check_interval(every_s: float) -> None:
    """Refuse an interval that would make reports all the time.

    Raises:
        StoreError: it is less than 2 s, or not a number.
    """
    from hpc_train.pipeline.watch_report import LEAST_S

    if not LEAST_S <= every_s < float("inf"):
        raise StoreError(
            f"--watch {every_s:g}: at least {LEAST_S:g} seconds", f"--watch {DEFAULT_S:g}"
        )


def watched(
    words: Sequence[str],
    search: Search,
    options: ReportOptions,
    target: tuple[Path | None, str | None],
    every_s: float,
) -> Built:
    """Keep file (of `target`, with its format) or terminal fresh; return the last report.

    Ctrl-C ends the command with exit code 130, and leaves the last report, not reloading.
    """
    from hpc_train.cli.follow_runs import cycles
    from hpc_train.pipeline.status import Watch
    from hpc_train.pipeline.watch_report import ReportWatch

    reports = ReportWatch(words, search, options, every_s)
    last: Built | None = None
    try:
        with _shown(*target) as show:
            for runs in cycles(Watch(reports.path), every_s):
                built = reports.changed(runs)
                last = built or last
                show(runs, built.report if built else None)
    except KeyboardInterrupt:
        _leave(last, *target)
        sys.exit(130)
    if last is None:
        raise StoreError(f"{reports.path}: there is no run to follow")
    return last


@contextmanager
def _shown(output: Path | None, form: str | None) -> Iterator[Show]:
    """Show states, and write the file; without a file, a terminal shows the report itself."""
    from hpc_train.cli.follow_runs import live_table
    from hpc_train.pipeline.write_report import render_report, write_report

    if output is None and sys.stdout.isatty():

        def redraw(runs: Sequence[Run], report: Report | None) -> None:
            if report is not None:
                click.clear()
                click.echo(plain(render_report(report, form or "text", columns())), nl=False)

        yield redraw
        return
    with live_table(sys.stderr if output is None else sys.stdout) as table:

        def write(runs: Sequence[Run], report: Report | None) -> None:
            if report is not None and output is not None:
                write_report(report, output, form)
            table(runs, {})

        yield write


def _leave(last: Built | None, output: Path | None, form: str | None) -> None:
    """Leave a page that does not reload itself any more."""
    from hpc_train.pipeline.watch_report import final
    from hpc_train.pipeline.write_report import write_report

    if last is not None and output is not None:
        for path in write_report(final(last.report), output, form):
            click.echo(path)
    click.echo("hpctrain: the runs continue; the report is that of the last change", err=True)
