"""`hpctrain render`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from hpc_train.cli.options import job_options, prepare_and_warn

if TYPE_CHECKING:
    from hpc_train.pipeline.prepare import Prepared


@click.command()
@job_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file; for a study, one file for each point into this folder.",
)
@click.option(
    "--schema",
    type=click.Choice(["job", "study"]),
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, value: _print_schema(ctx, value),
    help="Print the JSON Schema of job or study files and stop.",
)
def render(
    file: Path,
    arguments: tuple[str, ...],
    site: str | None,
    output: Path | None,
    **given: Any,
) -> None:
    """Print the job script.

    Byte for byte as `submit` would hand it over; of a study, one script for each point.
    """
    prepared = prepare_and_warn(file, arguments, site, given)
    if output is None:
        echo_scripts(prepared)
    else:
        _write_scripts(prepared, output)


def echo_scripts(prepared: Prepared) -> None:
    """Print each point's script, below its name when there are several."""
    if prepared.allocation is not None:
        click.echo("# ==== allocation ====")
        click.echo(prepared.allocation.text, nl=False)
    for point in prepared.points:
        if prepared.study is not None:
            click.echo(f"# ==== {point.stem} ====")
        click.echo(point.script.text, nl=False)


def _write_scripts(prepared: Prepared, output: Path) -> None:
    from hpc_train.runs.files import cannot_write, write_file

    if prepared.study is None:
        write_file(output, prepared.points[0].script.text.encode())
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise cannot_write(output, failure) from None
    if prepared.allocation is not None:
        write_file(output / "allocation.sbatch", prepared.allocation.text.encode())
    for point in prepared.points:
        write_file(output / f"{point.stem}.sbatch", point.script.text.encode())


def _print_schema(ctx: click.Context, kind: Literal["job", "study"] | None) -> None:
    if kind is None:
        return
    from hpc_train.pipeline.schema import json_schema

    click.echo(json_schema(kind))
    ctx.exit()
