"""`hpctrain render` and `explain`."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from hpc_train.base.data_folders import schema_file
from hpc_train.base.errors import StoreError
from hpc_train.base.values import encode_unit
from hpc_train.cli.job_command import JobCommand
from hpc_train.cli.options import job_options, path_option, prepare_and_warn, results_option
from hpc_train.cli.output import echo_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hpc_train.runs.run import Script
    from hpc_train.scripts.explain import Explained
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
    "--runtime",
    is_flag=True,
    help="Print runtime.sh, which the script sources, instead of the script.",
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
    runtime: bool,
    templates: bool,
    **given: Any,
) -> None:
    """Print the job script.

    The output is byte for byte what `submit` runs, unless --plain is given; for a study, one
    script per point. With -o, runtime.sh, which tracks the run, is written beside the script.
    """
    if (templates or runtime) and output is not None:
        raise click.UsageError("--show-template and --runtime print; leave out --output")
    prepared = prepare_and_warn(file, arguments, site, given)
    if templates:
        _echo_templates(prepared)
    elif runtime:
        beside = dict(_scripts(prepared)[0].beside)
        if not beside:
            raise click.UsageError("this script sources no runtime.sh; leave out --plain")
        for name, text in beside.items():
            click.echo(text if name == "runtime.sh" else f"# ==== {name} ====\n{text}", nl=False)
    elif output is None:
        echo_scripts(prepared)
    else:
        _write_scripts(prepared, output)


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
    for file in dict.fromkeys(file for one in _scripts(prepared) for file in one.templates):
        click.echo(f"# ==== {file.path} ({'shipped' if file.shipped else 'site'}) ====")
        text = Path(file.path).read_text(encoding="utf-8")
        click.echo(text, nl=not text.endswith("\n"))


def _scripts(prepared: Prepared) -> list[Script]:
    allocation = [prepared.allocation] if prepared.allocation is not None else []
    return [point.script for point in prepared.points] + allocation


def _write_scripts(prepared: Prepared, output: Path) -> None:
    """Write scripts that find what is beside them, wherever they are submitted."""

    from hpc_train.runs.json_files import cannot_write, write_file

    folder = output.absolute() if prepared.study else output.absolute().parent
    here = output if prepared.study else output.parent
    beside = {here / name: text for one in _scripts(prepared) for name, text in one.beside}
    if prepared.study is None:
        texts = {output: prepared.points[0].script.text_for(folder)}
    else:
        texts = {output / f"{p.stem}.sbatch": p.script.text_for(folder) for p in prepared.points}
    if prepared.allocation is not None:
        texts[output / "allocation.sbatch"] = prepared.allocation.text
    is_new = not output.exists()
    _check_free(output, beside, is_folder=prepared.study is not None)
    try:
        if prepared.study is not None:
            output.mkdir(parents=True, exist_ok=True)
        for path, text in {**texts, **beside}.items():
            write_file(path, text.encode())
    except OSError as failure:
        raise cannot_write(output, failure) from None
    except StoreError:
        if is_new and prepared.study is not None:
            shutil.rmtree(output, ignore_errors=True)
        raise


def _check_free(output: Path, beside: Iterable[Path], is_folder: bool) -> None:
    """Refuse to write over what is no file of hpctrain.

    Raises:
        StoreError: the output is a device or takes a name that it needs, or a file has that name.
    """

    if output.is_relative_to("/dev") or (output.exists() and output.is_file() == is_folder):
        raise StoreError(f"{output}: is no file", "leave out -o: the script is printed")
    for path in beside:
        if path == output or (path.exists() and b"hpctrain" not in path.read_bytes()):
            raise StoreError(
                f"{path}: hpctrain writes this file beside the script; yours would be lost",
                "write the script into another folder: -o jobs/job.sh",
            )


def _print_schema(ctx: click.Context, kind: Literal["job", "study", "defaults"] | None) -> None:
    if kind is None:
        return
    click.echo(msgspec.json.format(schema_file(kind).read_bytes(), indent=2))
    ctx.exit()


@click.command(cls=JobCommand)
@partial(job_options, metavar="FILE|RUN")
@results_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    file: Path,
    arguments: tuple[str, ...],
    site: str | None,
    results: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Print every setting, directive, variable and argument: value, origin, why.

    Explains a job file, a study or a script, or a run as it was submitted: by its folder or id, or
    by the name of its job or study. Of a study, the first point is explained; of a job, its last
    run.
    """
    from hpc_train.scripts.explain import explain as explain_plan
    from hpc_train.submissions.explain_run import explain_run, find_run

    folder = None if arguments else find_run(file, results)
    if folder is None:
        prepared = prepare_and_warn(file, arguments, site, given)
        first, number = prepared.points[0], len(prepared.points)
        title = f"{first.stem}: the first of {number} points" if prepared.study else ""
        parts = [(title, explain_plan(first.plan, prepared.site.site))]
    else:
        if names := [key for key, value in {"site": site, **given}.items() if value]:
            option = names[0].replace("settings", "set").replace("_", "-")
            raise click.UsageError(
                f"--{option} changes a job; a run was planned when it was submitted"
            )
        run = explain_run(folder)
        parts = [(run.title, run.items)]
    if as_json:
        click.echo(_json([item for _, items in parts for item in items]))
        return
    for number, (title, items) in enumerate(parts):
        if number:
            click.echo()
        _print(title, items)


def _print(title: str, items: Sequence[Explained]) -> None:
    from hpc_train.scripts.explain import text_of

    if title:
        click.echo(title)
    for number, kind in enumerate(dict.fromkeys(item.kind for item in items)):
        if number:
            click.echo()
        rows = [
            (item.name, text_of(item.value), item.origin, _why(item))
            for item in items
            if item.kind == kind
        ]
        value = "instead" if kind == "missing" else "value"
        echo_table((kind, value, "origin", "why"), rows)


def _why(item: Explained) -> str:
    references = ", ".join(filter(None, (item.trap, item.source)))
    return f"{item.why} ({references})" if references and item.why else item.why or references


def _json(items: Sequence[Explained]) -> bytes:

    names = ("value", "origin", "why", "trap", "source")
    rows = [
        {"kind": one.kind, "setting": one.name, **{name: getattr(one, name) for name in names}}
        for one in items
    ]
    return msgspec.json.encode(rows, enc_hook=encode_unit)
