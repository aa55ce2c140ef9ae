"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hpc_train.registry import BUILT_IN

if TYPE_CHECKING:
    from hpc_train.pipeline.render import Prepared

F = TypeVar("F", bound=Callable[..., Any])

_JOB_OPTIONS = {
    "name": "Name of the job or study.",
    "launcher": f"{', '.join(BUILT_IN['launchers'])}.",
    "nodes": "Number of nodes.",
    "tasks_per_node": "Ranks on each node.",
    "gpus_per_node": "GPUs on each node.",
    "cpus_per_task": "CPU cores of each rank.",
    "mem": "Memory per node, e.g. 480G.",
    "time": "Time limit, e.g. 1h30m.",
    "partition": "Slurm partition.",
    "account": "Slurm account.",
    "qos": "Slurm quality of service.",
    "constraint": "Slurm node features.",
}

_SITE = (
    "Site profile: a name or a file. Default: $HPCTRAIN_SITE, else the profile that matches this "
    "host (hpctrain site detect), else local. Where a scheduler is found, nothing runs on this "
    "host without --site local."
)


def setting_options(command: F) -> F:
    """Add the options for the keys of a job."""
    for key, text in reversed(_JOB_OPTIONS.items()):
        command = click.option(f"--{key.replace('_', '-')}", key, help=text)(command)
    return click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any key of the file."
    )(command)


def job_options(command: F) -> F:
    """Add FILE, the site and the options for the keys of a job."""
    command = setting_options(command)
    command = click.option("--site", help=_SITE)(command)
    command = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)
    return click.argument("file", metavar="FILE", type=click.Path(path_type=Path))(command)


def _default_results() -> Path:
    from hpc_train.json_files import default_results

    return default_results()


results_option = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=_default_results,
    help="Folder of all results (default: $HPCTRAIN_RESULTS or ./results).",
)


def pattern_options(command: F) -> F:
    """Add the options for lines of logs that no parser reads."""
    command = click.option(
        "--scope",
        type=click.Choice(["global", "per_gpu", "per_rank"]),
        default="per_rank",
        show_default=True,
        help="Scope of the values of --pattern.",
    )(command)
    return click.option(
        "--pattern",
        "regexes",
        metavar="[NAME=]REGEX",
        multiple=True,
        help="Other lines to read: 'step_time[ms]=took ([0-9.]+)'.",
    )(command)


def path_option(*names: str, help: str) -> Callable[[F], F]:
    """Return an option for a file to write; a second one is refused, as only one is written."""
    return click.option(
        *names,
        type=click.Path(path_type=Path),
        multiple=True,
        callback=_only_one,
        help=help,
    )


def _only_one(
    context: click.Context, option: click.Parameter, paths: tuple[Path, ...]
) -> Path | None:
    if len(paths) > 1:
        named = ", ".join(map(str, paths))
        raise click.UsageError(f"{option.opts[-1]} is given {len(paths)} times ({named}); give one")
    return paths[0] if paths else None


def prepare_and_warn(
    file: Path,
    arguments: tuple[str, ...],
    site: str | None,
    given: dict[str, Any],
    *,
    starts: bool = False,
) -> Prepared:
    """Prepare the requested job or study; print why its site was chosen, and its warnings."""
    from msgspec.structs import replace

    from hpc_train.pipeline.render import prepare, request_of

    options = {key: given[key] for key in _JOB_OPTIONS if given.get(key) is not None}
    settings = given.get("settings", ())
    request = request_of(file, arguments, site, options, settings)
    prepared = prepare(replace(request, plain=bool(given.get("plain")), starts=starts))
    if prepared.choice is not None and prepared.choice.notice:
        click.echo(f"hpctrain: {prepared.choice.notice}", err=True)
    for warning in prepared.warnings:
        click.echo(f"hpctrain: warning: {warning}", err=True)
    return prepared
