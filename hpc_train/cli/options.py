"""Options that several commands share, and their completion in a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.registry import BUILT_IN, names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from hpc_train.jobs.override import Override
    from hpc_train.jobs.study import Study
    from hpc_train.scripts.prepare import Prepared


F = TypeVar("F", bound=Callable[..., Any])

# Key of the job (below "directives.": an option of sbatch) -> its options, those of sbatch and
# torchrun among them, and the help text.
_JOB_OPTIONS = {
    "name": ("--name -J --job-name", "Name of the job or study."),
    "launcher": ("--launcher", f"{', '.join(BUILT_IN['launchers'])}."),
    "nodes": ("--nodes -N --nnodes", "Number of nodes; several (1,2,4) make a study of sizes."),
    "tasks_per_node": (
        "--tasks-per-node --ntasks-per-node --nproc-per-node --nproc_per_node",
        "Ranks on each node.",
    ),
    "ntasks": ("--ntasks -n", "Ranks on all nodes together."),
    "gpus_per_node": ("--gpus-per-node --gres", "GPUs on each node: 4, a100:4, gpu:4."),
    "gpus": ("--gpus -G", "GPUs on all nodes together."),
    "cpus_per_task": ("--cpus-per-task -c", "CPU cores of each rank."),
    "mem": ("--mem", "Memory per node, e.g. 480G."),
    "time": ("--time -t", "Time limit, e.g. 1h30m."),
    "partition": ("--partition -p", "Slurm partition."),
    "account": ("--account -A", "Slurm account."),
    "qos": ("--qos -q", "Slurm quality of service."),
    "constraint": ("--constraint -C", "Slurm node features."),
    "exclusive": ("--exclusive", "Share the nodes with no other job."),
    "directives.reservation": ("--reservation", "Slurm reservation."),
    "directives.nodelist": ("--nodelist -w", "Nodes to use."),
    "directives.exclude": ("--exclude -x", "Nodes to leave out."),
}
_SIZES = ("nodes", "gpus_per_node", "tasks_per_node")
_SITE = (
    "Site profile: a name or a file. Default: $HPCTRAIN_SITE, else the profile that matches this "
    "host (hpctrain site detect), else local. Where a scheduler is found, nothing runs on this "
    "host without --site local."
)


def sites(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the profiles that begin so, and the files."""
    from hpc_train.sites.search import profile_files

    return _items([path.stem for path in profile_files()], begun, files="*.yaml")


def runs(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the studies, jobs and runs that begin so."""
    return _items(_names(context), begun)


def runs_or_files(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the studies, jobs, runs and files that begin so."""
    return _items(_names(context), begun, files="*")


def launchers(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the launchers that begin so."""
    return _items(sorted(names("launchers")), begun)


def _names(context: click.Context) -> Iterator[str]:
    """Yield the names of all jobs and studies, and of their runs."""
    from hpc_train.runs.json_files import default_results
    from hpc_train.runs.run_folders import homes, run_folders

    given: Any = context.params.get("results")
    # A shell that waits for words cannot show an error.
    with suppress(HpcTrainError, OSError):
        for home in homes(Path(given) if given else default_results()):
            yield home.name
            yield from (run.run_id for run in run_folders(home))


def _items(words: Iterable[str], begun: str, files: str = "") -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    found = [CompletionItem(word) for word in words if word.startswith(begun)]
    # With type `file` a shell would complete files only, and drop the words.
    return found + [CompletionItem(path) for path in _paths(begun, files)] if files else found


def _paths(begun: str, files: str) -> Iterator[str]:
    """Yield the files and folders that begin so; a folder ends with a slash."""
    head, slash, tail = begun.rpartition("/")
    with suppress(OSError):
        for path in sorted(Path(f"{head}{slash}" or ".").iterdir()):
            hidden = path.name.startswith(".") and not tail
            if path.name.startswith(tail) and not hidden:
                if path.is_dir():
                    yield f"{head}{slash}{path.name}/"
                elif path.match(files):
                    yield f"{head}{slash}{path.name}"


site_option = click.option("--site", shell_complete=sites, help=_SITE)


def setting_options(command: F, *, letters: bool = True) -> F:
    """Add the options for the keys of a job, with the letters of sbatch or without."""
    for key, (options, text) in reversed(_JOB_OPTIONS.items()):
        names = [one for one in options.split() if letters or one.startswith("--")]
        how: dict[str, Any] = {"shell_complete": launchers} if key == "launcher" else {}
        if key == "exclusive":
            how = {"is_flag": True, "flag_value": "true", "default": None}
        command = click.option(*names, key.replace(".", "_"), help=text, **how)(command)
    return click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any key of the file."
    )(command)


def job_options(command: F, metavar: str = "FILE") -> F:
    """Add FILE, the site and the options for the keys of a job."""
    command = setting_options(command)
    command = site_option(command)
    command = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)
    path = click.Path(path_type=Path)
    completer = runs_or_files if "RUN" in metavar else None
    return click.argument("file", metavar=metavar, type=path, shell_complete=completer)(command)


def _default_results() -> Path:
    from hpc_train.runs.json_files import default_results

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
    """Return an option for a file to write.

    `stdout`: the command writes to stdout without the option, and `-` means the same.
    """
    # As text: a Path makes "." of an empty one.
    kind = click.Path()
    return click.option(*names, type=kind, callback=partial(_to_write, stdout=stdout), help=help)


def _to_write(
    context: click.Context, option: click.Parameter, path: str | None, *, stdout: bool
) -> Path | None:
    if path == "" or (path == "-" and not stdout):
        raise click.UsageError(f"{option.opts[-1]} {path!r} names no file; name one")
    return None if path in (None, "-") else Path(path)


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

    from hpc_train.scripts.prepare import prepare, request_of

    request = request_of(file, arguments, site, job_keys(given), given.get("settings", ()))
    overrides = (*own, *request.overrides)
    plain = bool(given.get("plain"))
    prepared = prepare(replace(request, overrides=overrides, plain=plain, starts=starts))
    for notice in prepared.notices:
        click.echo(f"hpctrain: {notice}", err=True)
    for warning in prepared.warnings:
        click.echo(f"hpctrain: warning: {warning}", err=True)
    for one in overrides:
        _say_share(one, prepared)
    sizes = (str(one.value) for one in overrides if one.key in _SIZES)
    if prepared.study is not None and any("," in size for size in sizes):
        _say_study(prepared.study)
    return prepared


def job_keys(given: Mapping[str, Any]) -> dict[str, str]:
    """Return key of the job -> text, of the options that were given."""
    typed = {key: given.get(key.replace(".", "_")) for key in _JOB_OPTIONS}
    return {key: text for key, text in typed.items() if text is not None}


def _say_share(option: Override, prepared: Prepared) -> None:
    """Say what a number of all nodes was taken as on each of several."""
    topologies = (point.plan.topology for point in prepared.points)
    several = next((one for one in topologies if one.nodes > 1), None)
    if option.of_all_nodes and several:
        each, key = getattr(several, option.key), option.key.replace("_", "-")
        click.echo(
            f"hpctrain: {option.origin} {option.value}: {each} on each of {several.nodes} nodes, "
            f"as sbatch reads it; --{key} {option.value} for each node",
            err=True,
        )


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
