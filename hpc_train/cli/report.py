"""`hpctrain report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hpc_train.cli.options import results_option
from hpc_train.cli.terminal import plain, plain_json


@click.command()
@click.argument("words", metavar="STUDY|PATH…", nargs=-1, required=True)
@results_option
@click.option("-f", "--format", "form", help="text, markdown, csv or json.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write here; .md puts the figure beside it, .svg and .png are the figure alone.",
)
@click.option("--parser", default="auto", show_default=True, help="Which lines to look for.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 when a gate is not met or a point has no result."
)
def report(
    words: tuple[str, ...],
    results: Path | None,
    form: str | None,
    output: Path | None,
    parser: str,
    check: bool,
) -> None:
    """Print the speedup table of a study, of a job's runs, or of logs.

    Exit code 3 when some of the runs that were asked for have no result, or logs cannot be read.
    """
    from hpc_train.cli.output import say, show_warnings
    from hpc_train.pipeline.evidence import evidence
    from hpc_train.pipeline.report import (
        build_report,
        check_format,
        needs_figure,
        render_report,
        write_report,
    )
    from hpc_train.pipeline.search import Search
    from hpc_train.runs.store import results_root

    check_format(form, output)
    show_warnings()
    found = evidence(words, Search(root=results_root(results), form=parser))
    built = build_report(found, draw=needs_figure(output))
    if output is None:
        safe = plain_json if form == "json" else plain
        click.echo(safe(render_report(built, form or "text")), nl=False)
    else:
        for path in write_report(built, output, form):
            click.echo(path)
        for text in found.warnings:
            say(text)
    if check:
        _check(built.checks)
    if found.unreadable or any(row["state"] != "COMPLETED" for row in built.run_rows):
        sys.exit(3)


def _check(missed: Sequence[str]) -> None:
    for line in missed:
        click.echo(plain(f"check: {line}"), err=True)
    if missed:
        sys.exit(1)
