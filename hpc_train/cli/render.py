"""`hpctrain render`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from hpc_train.cli.job_command import JobCommand
from hpc_train.cli.options import job_options, path_option, prepare_and_warn

if TYPE_CHECKING:
    from hpc_train.scripts.prepare import Prepared


@click.command(cls=JobCommand)
@job_options
@path_option(
    "-o",
    "--output",
    help="Write to this file; for a study, one file per point into this folder.",
    stdout=True,
)
@click.option(
    "--plain",
    is_flag=True,
    help="Print a short script without tracking: directives, modules, environment, one launch.",
)
@click.option(
    "--show-template",
    "templates",
    is_flag=True,
    help="Print the templates of the script instead of the script.",
)
@click.option(
    "--schema",
    type=click.Choice(["job", "study", "defaults"]),
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, value: _print_schema(ctx, value),
    help="Print the JSON Schema of such files and exit.",
)
def render(
    file: Path,
    arguments: tuple[str, ...],
    site: str | None,
    output: Path | None,
    templates: bool,
    **given: Any,
) -> None:
    """Print the job script.

    The output is byte for byte what `submit` runs, unless --plain is given; for a study, one
    script per point.
    """
    if templates and output is not None:
        raise click.UsageError("--show-template prints; leave out --output")
    prepared = prepare_and_warn(file, arguments, site, given)
    _warn_of_place(prepared)
    if templates:
        _echo_templates(prepared)
    elif output is None:
        echo_scripts(prepared)
    else:
        _write_scripts(prepared, output)


def _warn_of_place(prepared: Prepared) -> None:
    """Warn about a folder that `submit` refuses; the script may be copied elsewhere."""
    from hpc_train.scripts.prepare import place_problem

    problem = place_problem(prepared)
    if problem:
        click.echo(f"hpctrain: warning: {problem}", err=True)


def echo_scripts(prepared: Prepared) -> None:
    """Print the script of each point, with its name above it if there are several."""
    if prepared.allocation is not None:
        click.echo("# ==== allocation ====")
        click.echo(prepared.allocation.text, nl=False)
    for point in prepared.points:
        if prepared.study is not None:
            click.echo(f"# ==== {point.stem} ====")
        click.echo(point.script.text, nl=False)
        if point.request is not None:
            from hpc_train.runs.json_files import to_json

            click.echo("# ==== request ====")
            click.echo(to_json(point.request).decode(), nl=False)


def _echo_templates(prepared: Prepared) -> None:
    """Print each template below its path and origin, in the order of use."""
    scripts = [point.script for point in prepared.points]
    scripts += [prepared.allocation] if prepared.allocation is not None else []
    for file in dict.fromkeys(file for script in scripts for file in script.templates):
        click.echo(f"# ==== {file.path} ({'shipped' if file.shipped else 'site'}) ====")
        text = Path(file.path).read_text(encoding="utf-8")
        click.echo(text, nl=not text.endswith("\n"))


def _write_scripts(prepared: Prepared, output: Path) -> None:
    import shutil

    from hpc_train.base.errors import StoreError
    from hpc_train.runs.json_files import cannot_write, write_file

    if prepared.study is None:
        write_file(output, prepared.points[0].script.text.encode())
        return
    texts = {point.stem: point.script.text for point in prepared.points}
    if prepared.allocation is not None:
        texts["allocation"] = prepared.allocation.text
    is_new = not output.exists()
    try:
        output.mkdir(parents=True, exist_ok=True)
        for stem, text in texts.items():
            write_file(output / f"{stem}.sbatch", text.encode())
    except OSError as failure:
        raise cannot_write(output, failure) from None
    except StoreError:
        if is_new:
            shutil.rmtree(output, ignore_errors=True)
        raise


def _print_schema(ctx: click.Context, kind: Literal["job", "study", "defaults"] | None) -> None:
    if kind is None:
        return
    from hpc_train.scripts.prepare import schema

    click.echo(schema(kind))
    ctx.exit()
