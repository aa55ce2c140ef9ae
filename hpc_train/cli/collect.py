"""`hpctrain collect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.cli.options import results_option

if TYPE_CHECKING:
    from hpc_train.model.record import Scope


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@results_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="FILE.csv, .jsonl or .parquet."
)
@click.option("--parser", default="auto", show_default=True, help="Which lines to look for.")
@click.option(
    "--pattern",
    "regexes",
    metavar="REGEX",
    multiple=True,
    help="A line of your own: named groups are metrics, as (?P<step_time>[0-9.]+).",
)
@click.option(
    "--scope",
    type=click.Choice(["global", "per_gpu", "per_rank"]),
    default="per_rank",
    show_default=True,
    help="Of what the values of --pattern are.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per record.")
def collect(
    paths: tuple[str, ...],
    results: Path | None,
    output: Path | None,
    parser: str,
    regexes: tuple[str, ...],
    scope: Scope,
    as_json: bool,
) -> None:
    """Print the measurements in logs: of runs and studies, or of any log files."""
    from hpc_train.pipeline.evidence import evidence
    from hpc_train.pipeline.export import records_text, write_records
    from hpc_train.pipeline.patterns import own_patterns
    from hpc_train.runs.store import results_root

    patterns = own_patterns(regexes, scope)
    found = evidence(paths, results_root(results), parser, patterns)
    if output is not None:
        write_records(found.records, output)
    else:
        click.echo(records_text(found.records, "jsonl" if as_json else "csv"), nl=False)
    runs = len({record.run for record in found.records})
    click.echo(f"{len(found.records)} records of {runs} runs", err=True)
    for run in found.study.runs:
        if not any(record.run == run.run_id for record in found.records):
            click.echo(f"no record: {run.run_id}  {run.state}  {run.problem}", err=True)
