"""`hpctrain compare`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.base.plain_text import plain
from hpc_train.cli.complete import runs_or_files
from hpc_train.cli.options import path_option, results_option
from hpc_train.cli.show_report import show_report

if TYPE_CHECKING:
    from hpc_train.reports.compare import ComparedReport


@click.command()
@click.argument("a", metavar="A", shell_complete=runs_or_files)
@click.argument("b", metavar="B", shell_complete=runs_or_files)
@results_option
@click.option("-f", "--format", "form", help="text (default), markdown, csv, json, html or latex.")
@path_option("-o", "--output", help="A file: .html, .md, .csv, .json …", stdout=True)
@click.option(
    "--parser", default="auto", show_default=True, help="One format of logs: collect --list."
)
@click.option(
    "--points", type=click.Path(path_type=Path), help="YAML: log -> nodes, gpus_per_node …"
)
@click.option("--min-effect", type=float, metavar="0.02", help="Smallest difference that counts.")
@click.option(
    "--allow-mixed", multiple=True, metavar="FIELD", help="Compare points that differ in FIELD."
)
@click.option("--allow-failed", is_flag=True, help="Also count logs that end in a failure.")
@click.option(
    "--check",
    is_flag=True,
    help="Exit with 1 if B is worse, a value is implausible, or no point has a verdict.",
)
def compare(
    a: str,
    b: str,
    results: Path,
    form: str | None,
    output: Path | None,
    parser: str,
    points: Path | None,
    min_effect: float | None,
    allow_mixed: tuple[str, ...],
    allow_failed: bool,
    check: bool,
) -> None:
    """Compare two results at each point, and list the settings that differ.

    A and B are any input of `hpctrain report`, a report as JSON, or runs of a study that share a
    value: STUDY:launcher=srun. Exit code 1 with --check, if B is worse or a value is
    implausible; 3 if a run of either side has no result. Verdicts: hpctrain help compare.
    """
    from hpc_train.base.extras import need
    from hpc_train.cli.output import busy, show_warnings

    need("hpctrain compare", "report")
    from hpc_train.jobs.log_selection import Search
    from hpc_train.reports.compare import CompareOptions
    from hpc_train.reports.compare import compare as compared
    from hpc_train.reports.write_report import check_format

    check_format(form, output)
    show_warnings()
    search = Search(root=results, form=parser, points=points, allow_failed=allow_failed)
    options = CompareOptions(min_effect=min_effect, allow_mixed=allow_mixed)
    with busy("reading results"):
        comparison = compared(a, b, search, options)
    show_report(comparison.report, form, output)
    if check:
        _check(comparison)
    if comparison.partial:
        sys.exit(3)


def _check(comparison: ComparedReport) -> None:
    for line in (*comparison.report.checks, *comparison.undecided):
        click.echo(plain(f"check: {line}"), err=True)
    if comparison.report.checks:
        sys.exit(1)
