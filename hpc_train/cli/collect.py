"""`hpctrain collect`."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hpc_train.base.plain_text import plain, plain_json
from hpc_train.cli.complete import log_formats, runs_or_files
from hpc_train.cli.options import path_option, pattern_options, results_option

if TYPE_CHECKING:
    from hpc_train.jobs.log_selection import StatedScope
    from hpc_train.reports.collect import Collection


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, shell_complete=runs_or_files)
@results_option
@path_option("-o", "--output", help="FILE.csv, .jsonl or .parquet.", stdout=True)
@click.option(
    "--format",
    "form",
    shell_complete=log_formats,
    default="auto",
    show_default=True,
    help="One format of --list.",
)
@click.option("--parser", "former", hidden=True, help="Former name of --format.")
@pattern_options
@click.option(
    "--prefix", default="", metavar="REGEX", help="Regex of line prefixes: (?P<rank>), local, host."
)
@click.option(
    "--cache", type=click.Path(path_type=Path), help="Cache the records of logs in this folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per record.")
@click.option(
    "--list", "listing", is_flag=True, help="List the formats, or explain that of --format."
)
def collect(
    paths: tuple[str, ...],
    results: Path,
    output: Path | None,
    form: str,
    former: str | None,
    regexes: tuple[str, ...],
    scope: StatedScope,
    prefix: str,
    cache: Path | None,
    as_json: bool,
    listing: bool,
) -> None:
    """Print the measurements in the logs of runs and studies, or in any log files.

    Exit code 3 when some of the files cannot be read.
    """
    from hpc_train.cli.output import busy
    from hpc_train.jobs.log_selection import Search
    from hpc_train.reports.collect import check_ending, collection, formats_text, with_patterns

    if listing:
        click.echo(formats_text(former or form), nl=False)
        return
    if not paths:
        raise click.UsageError("name a log, a folder of logs, a run or a study")
    if output is not None:
        check_ending(output)
    search = Search(root=results, form=former or form, prefix=prefix, cache=cache)
    search = with_patterns(search, regexes, scope)
    with busy("finding logs"):
        found = collection(paths, search)
    _print(found, output, "jsonl" if as_json else "csv")


def _print(collection: Collection, output: Path | None, form: Literal["csv", "jsonl"]) -> None:
    from hpc_train.cli.output import busy, show_warnings
    from hpc_train.reports.collect import records_text, write_records

    show_warnings()
    is_silent = output is not None or _prints_to_file()
    said = busy(lambda: f"reading logs, {collection.counts.total()} records")
    with said if is_silent else nullcontext():
        if output is not None:
            write_records(collection.packs(), output)
        else:
            safe = plain_json if form == "jsonl" else plain
            for text in records_text(collection.packs(), form):
                click.echo(safe(text), nl=False)
    for line in collection.summary():
        click.echo(plain(line), err=True)
    if collection.stats.failed:
        sys.exit(3)


def _prints_to_file() -> bool:
    """Whether stdout is a file; a pipe may lead to a pager, which uses the terminal itself."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except OSError:
        return False
