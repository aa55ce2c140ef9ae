"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hpc_train.registry import BUILT_IN

if TYPE_CHECKING:
    from hpc_train.model.study import Study
    from hpc_train.pipeline.prepared import Prepared
    from hpc_train.specs.override import Override

F = TypeVar("F", bound=Callable[..., Any])

_JOB_OPTIONS = {
    "name": "Name of the job or study.",
    "launcher": f"{', '.join(BUILT_IN['launchers'])}.",
    "nodes": "Number of nodes; several (1,2,4) make a study of these sizes.",
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
_SIZES = ("nodes", "gpus_per_node", "tasks_per_node")

# As people type it -> the key of the job, and what a number of it is.
_SAME = {
    "gpus": ("gpus_per_node", "GPUs on each node"),
    "nproc_per_node": ("tasks_per_node", "ranks on each node"),
    "nnodes": ("nodes", "nodes"),
}
_SITE = (
    "Site profile: a name or a file. Default: $HPCTRAIN_SITE, else the profile that matches this "
    "host (hpctrain site detect), else local. Where a scheduler is found, nothing runs on this "
    "host without --site local."
)


def _completer(name: str) -> Callable[..., Any]:
    """Return a function of `complete`, which only the completion of a shell imports."""

    def found(context: click.Context, option: click.Parameter, begun: str) -> Any:
        from hpc_train.cli import complete

        return getattr(complete, name)(context, option, begun)

    return found


site_option = click.option("--site", shell_complete=_completer("sites"), help=_SITE)


def setting_options(command: F) -> F:
    """Add the options for the keys of a job."""
    for key, text in reversed(_JOB_OPTIONS.items()):
        completer = _completer("launchers") if key == "launcher" else None
        option = f"--{key.replace('_', '-')}"
        command = click.option(option, key, shell_complete=completer, help=text)(command)
    return click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any key of the file."
    )(command)


def job_options(command: F, metavar: str = "FILE") -> F:
    """Add FILE, the site and the options for the keys of a job."""
    command = launcher_options(setting_options(command))
    command = site_option(command)
    command = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)
    path = click.Path(path_type=Path)
    completer = _completer("runs_or_files") if "RUN" in metavar else None
    return click.argument("file", metavar=metavar, type=path, shell_complete=completer)(command)


def _default_results() -> Path:
    from hpc_train.json_files import default_results

    return default_results()


results_option = click.option(
    "--results",
    # Our own error for a folder that cannot be read names the next command.
    type=click.Path(path_type=Path, readable=False),
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


def path_option(*names: str, help: str, stdout: bool = False) -> Callable[[F], F]:
    """Return an option for a file to write; a second one is refused, as only one is written.

    `stdout`: the command writes to stdout without the option, and `-` means the same.
    """
    return click.option(
        *names,
        # As text: a Path makes "." of an empty one.
        type=click.Path(),
        multiple=True,
        callback=partial(_only_one, stdout=stdout),
        help=help,
    )


def _only_one(
    context: click.Context, option: click.Parameter, paths: tuple[str, ...], *, stdout: bool
) -> Path | None:
    if len(paths) > 1:
        named = ", ".join(paths)
        raise click.UsageError(f"{option.opts[-1]} is given {len(paths)} times ({named}); give one")
    if "" in paths:
        raise click.UsageError(f"{option.opts[-1]} '' names no file; name one")
    path = Path(paths[0]) if paths else None
    if path != Path("-"):
        return path
    if not stdout:
        raise click.UsageError(f"{option.opts[-1]} writes a file, not to stdout; name one")
    return None


def prepare_and_warn(
    file: Path,
    arguments: tuple[str, ...],
    site: str | None,
    given: dict[str, Any],
    *,
    starts: bool = False,
    own: Sequence[Override] = (),
) -> Prepared:
    """Prepare the requested job or study; print why its site was chosen, and its warnings.

    `own` are keys of the command itself, which the given ones override.
    """
    from msgspec.structs import replace

    from hpc_train.pipeline.render import prepare, request_of

    given = in_words_of_job(given)
    options = {key: given[key] for key in _JOB_OPTIONS if given.get(key) is not None}
    settings = given.get("settings", ())
    request = request_of(file, arguments, site, options, settings)
    overrides = (*own, *request.overrides)
    plain = bool(given.get("plain"))
    prepared = prepare(replace(request, overrides=overrides, plain=plain, starts=starts))
    if prepared.notice:
        click.echo(f"hpctrain: {prepared.notice}", err=True)
    for warning in prepared.warnings:
        click.echo(f"hpctrain: warning: {warning}", err=True)
    sizes = (str(one.value) for one in overrides if one.key in _SIZES)
    if prepared.study is not None and any("," in size for size in sizes):
        _say_study(prepared.study)
    return prepared


def _say_study(study: Study) -> None:
    """Say what several sizes on the command line were taken as."""
    points, often = len(study.points), study.spec.repetitions
    scaling = study.spec.scaling or "strong"
    runs = f"{often} run{'s' * (often != 1)}"
    same = "global batch" if scaling == "strong" else "batch of a rank"
    other = "weak" if scaling == "strong" else "strong"
    click.echo(
        f"hpctrain: a study of {points} sizes, {runs} of each; {scaling} scaling: the {same} "
        f"stays the same (--set scaling={other}, --set repetitions=5)",
        err=True,
    )


def launcher_options(command: F) -> F:
    """Add the options of torchrun and others, which set keys of the job."""
    for name, (key, _) in reversed(_SAME.items()):
        option, same = f"--{name.replace('_', '-')}", f"--{key.replace('_', '-')}"
        names = dict.fromkeys((option, f"--{name}"))
        command = click.option(*names, name, help=f"The same as {same}.")(command)
    return command


def in_words_of_job(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with those of `launcher_options` as keys of the job, and say it.

    Raises:
        click.UsageError: two options set one key.
    """
    options = dict(given)
    for name, (key, meaning) in _SAME.items():
        value = options.pop(name, None)
        if value is None:
            continue
        option, same = f"--{name.replace('_', '-')}", f"--{key.replace('_', '-')}"
        if options.get(key) is not None:
            raise click.UsageError(f"{option} is the same as {same}; give one of them")
        click.echo(f"hpctrain: {option} {value}: taken as {same} {value}, {meaning}", err=True)
        options[key] = value
    return options
