"""`hpctrain collect`."""

from __future__ import annotations

from pathlib import Path

import click

from hpc_train.cli.options import results_option


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@results_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="FILE.csv, .jsonl or .parquet."
)
@click.option("--parser", default="auto", show_default=True, help="Which lines to look for.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per record.")
def collect(
    paths: tuple[str, ...], results: Path | None, output: Path | None, parser: str, as_json: bool
) -> None:
    """Print the measurements in logs: of runs and studies, or of any log files."""
    from hpc_train.pipeline.evidence import evidence
    from hpc_train.pipeline.export import records_text, write_records
    from hpc_train.runs.store import results_root

    found = evidence(paths, results_root(results), parser)
    if output is not None:
        write_records(found.records, output)
    else:
        click.echo(records_text(found.records, "jsonl" if as_json else "csv"), nl=False)
    runs = len({record.run for record in found.records})
    click.echo(f"{len(found.records)} records of {runs} runs", err=True)
    for run in found.study.runs:
        if not any(record.run == run.run_id for record in found.records):
            click.echo(f"no record: {run.run_id}  {run.state}  {run.problem}", err=True)
