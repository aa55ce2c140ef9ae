"""`hpctrain track`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.cli.options import path_option, results_option
from hpc_train.cli.show_report import show_report
from hpc_train.plain_text import plain

if TYPE_CHECKING:
    from hpc_train.pipeline.track_show import ShownHistory


def _default_history() -> Path:
    return Path(os.environ.get("HPCTRAIN_HISTORY") or "history")


_history_option = click.option(
    "--history",
    type=click.Path(path_type=Path),
    default=_default_history,
    help="Folder of the history (default: $HPCTRAIN_HISTORY or ./history).",
)


@click.group()
def track() -> None:
    """Store reports as the history of a site, and find when its results changed."""


@track.command()
@click.argument("word", metavar="STUDY|BUNDLE|REPORT.json")
@results_option
@_history_option
@click.option("--site", help="Name of the site (default: the one that the runs recorded).")
@click.option("--study", help="Name of the study (default: that of the report).")
@click.option("--started", metavar="TIME", help="Start of the runs, if they did not record it.")
@click.option(
    "--parser", default="auto", show_default=True, help="One format of logs: collect --list."
)
@click.option(
    "--points", type=click.Path(path_type=Path), help="YAML: log -> nodes, gpus_per_node …"
)
def add(
    word: str,
    results: Path,
    history: Path,
    parser: str,
    points: Path | None,
    **stated: str | None,
) -> None:
    """Store the results of a study as one file; adding them twice changes nothing.

    The word is a study, a bundle, report.json, or any other input of `hpctrain report`. See
    hpctrain help track.
    """
    from hpc_train.cli.output import say, show_warnings
    from hpc_train.extras import need

    need("hpctrain track", "report")
    from hpc_train.cli.busy import busy
    from hpc_train.model.log_selection import Search
    from hpc_train.pipeline.track_add import Stated
    from hpc_train.pipeline.track_add import add as add_entry

    show_warnings()
    search = Search(root=results, form=parser, points=points)
    with busy("reading results"):
        added = add_entry(word, history, search, Stated(**stated))
    click.echo(plain(str(added.path)))
    if not added.is_new:
        say("already stored")
    for path in added.same_start:
        say(f"{path} has the same study and start: track show uses the one with more results")


@track.command()
@click.argument("word", metavar="[SITE|STUDY]", required=False)
@_history_option
@click.option("-f", "--format", "form", help="text (default), markdown, csv, json, html or latex.")
@path_option("-o", "--output", help="A file: .html, .md, .csv, .json …", stdout=True)
@click.option("--since", metavar="DATE", help="Only entries of this day (UTC) or later.")
@click.option(
    "--threshold",
    type=float,
    default=0.05,
    show_default=True,
    help="A loss is not reported if its whole interval is smaller.",
)
@click.option("--check", is_flag=True, help="Exit with 1 if a newest level is worse.")
def show(
    word: str | None,
    history: Path,
    form: str | None,
    output: Path | None,
    since: str | None,
    threshold: float,
    check: bool,
) -> None:
    """Print each point over time, with the changes of its level.

    Exit code 1 with --check, if the newest level of a point is worse than the one before; 3 if an
    entry cannot be read. See hpctrain help track.
    """
    from hpc_train.cli.output import say
    from hpc_train.extras import need

    need("hpctrain track", "report")
    from hpc_train.pipeline.track_show import TrackDemands
    from hpc_train.pipeline.track_show import show as show_history
    from hpc_train.pipeline.write_report import check_format, default_options, is_csv

    check_format(form, output)
    shown = show_history(
        history,
        TrackDemands(word, since, threshold),
        default_options(output, form),
        values_first=is_csv(output, form),
    )
    show_report(shown.report, form, output)
    for line in shown.damaged:
        say(line)
    if check:
        _check(shown)
    if shown.damaged:
        sys.exit(3)


def _check(shown: ShownHistory) -> None:
    for line in (*shown.report.checks, *shown.undecided):
        click.echo(plain(f"check: {line}"), err=True)
    if shown.report.checks:
        sys.exit(1)
