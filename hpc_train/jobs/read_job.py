"""A job or study file, a script or a command -> JobSpec with origins, and the points of a study."""

import copy
import itertools
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hpc_train.base.decode import decode, keys_of
from hpc_train.base.errors import SpecError, nearest
from hpc_train.base.slurm_options import directive_problem
from hpc_train.base.values import Duration, Sourced, slurm_memory, slurm_seconds
from hpc_train.base.variable_names_and_secrets import (
    ENV,
    KEPT,
    is_reserved,
    is_variable,
    looks_secret,
    named_by_job,
    secret_in,
    why_not_empty,
)
from hpc_train.base.yamlfile import Document, lookup, nearest_file, read
from hpc_train.jobs.job import JobSpec, Resources, SourcedJob
from hpc_train.jobs.log_selection import LogPattern, check_pattern
from hpc_train.jobs.override import Override, apply, check_key, full_key, has_sizes
from hpc_train.jobs.study import SIZE_AXES, Point, Study, StudySpec

_GPUS = "resources.gpus_per_node"
# As in the options of sbatch: a100:4, gpu:4, gpu:a100:4, gpu.
_TYPE_AND_NUMBER = re.compile(
    r"(?:gres/)?(?!shard:|mps:|\d)(?:gpu(?=:|$):?)?(?:(?P<type>[A-Za-z][\w.-]{0,63}):)?"
    r"(?P<number>[0-9]{1,3})?"
)
# A word for a number of resources elsewhere -> the key of a job.
_WORDS = {
    "gpu": "gpus_per_node",
    "gpus": "gpus_per_node",
    "num_gpus": "gpus_per_node",
    "num_nodes": "nodes",
    "nnodes": "nodes",
    "ntasks": "tasks_per_node",
    "nproc_per_node": "tasks_per_node",
    "memory": "mem",
    "walltime": "time",
}
_MINUTES = re.compile(r"\d+(-\d+)?")
# What torchrun reads as the number of its GPUs.
_EACH_GPU = ("gpu", "auto", "cpu")
ASSIGNED = re.compile(r"([A-Za-z_]\w{0,200})=(.*)", re.DOTALL)
# Parts of a command line that a shell passes on as they are, and what it does not.
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\$`]|\\.)*\"|\\.", re.DOTALL)
_OF_SHELL = re.compile(r"[|&;<>$`()*\n]+|(?<!\S)[~#]")
# Programs that start another one; a login node may lack them.
_STARTERS = re.compile(r"python[0-9.]*|bash|sh|uv|conda|poetry|pixi")


def is_study(document: Document) -> bool:
    """Whether a file is a study: it has axes."""
    return isinstance(document.data, dict) and "axes" in document.data


def build_job(
    data: Any,
    origins: dict[str, str],
    overrides: Sequence[Override],
    path: Path,
) -> SourcedJob:
    """Decode a job's plain values; `path` is the file they came from.

    The name defaults to that of the file; `workdir` and the files of `secrets` are relative to
    the file's folder.

    Raises:
        SpecError: an invalid value, an invalid name of a variable, or a plain-text secret.
    """
    if not isinstance(data, dict):
        raise SpecError(f"{path}: a job file is a mapping with the key 'command'")
    data, origins = copy.deepcopy(data), dict(origins)
    if "name" not in data:
        data["name"] = _job_name(path)
        origins["name"] = "default: the file's name"
    for override in overrides:
        check_key(override.key, override.origin)
    # Before the options, which may change one word of it, and after, as one may be a text.
    _read_command(data, origins)
    full = [replace(one, key=full_key(one.key)) for one in overrides]
    apply(data, origins, [one for one in full if not one.of_all_nodes])
    _divide(data, origins, full)
    _split_type(data, origins)
    _read_command(data, origins)
    _read_bare_words(data, origins)
    _refuse_other_words(data, origins)
    job = decode(data, JobSpec, origins, SpecError)
    for name, value in job.value.directives.items():
        if problem := directive_problem(name, value):
            place = job.near(f"directives.{name}")
            raise SpecError(f"{place}: directives.{name}: {problem[0]}", problem[1])
    check_variables(job)
    return _with_paths(job, path)


def _refuse_other_words(data: dict[str, Any], origins: Mapping[str, str]) -> None:
    """Refuse keys that stand beside `resources`, or that have another name, with the job's own."""
    resources = data.get("resources")
    inner = resources if isinstance(resources, dict) else {}
    for path, key, value in (
        *((key, key, value) for key, value in data.items()),
        *((f"resources.{key}", key, value) for key, value in inner.items() if key in _WORDS),
    ):
        word = str(key).replace("-", "_")
        ours = word if word in keys_of(Resources) else _WORDS.get(word)
        if ours:
            place = Sourced(value=None, origins=origins).near(path)
            each = "  # on each node" * ours.endswith("_per_node")
            raise SpecError(
                f"{place}: {path}: write resources.{ours}", f"resources: {{{ours}: {value}}}{each}"
            )


def _split_type(data: dict[str, Any], origins: dict[str, str]) -> None:
    """Read a number of GPUs with their type, as sbatch does: `gpu:a100:4`, `a100:4`."""
    value = lookup(data, _GPUS)
    found = _TYPE_AND_NUMBER.fullmatch(value) if isinstance(value, str) else None
    if found:
        data["resources"]["gpus_per_node"] = int(found["number"] or 1)
        if found["type"]:
            data["resources"]["gpu_type"] = found["type"]
            origins["resources.gpu_type"] = Sourced(value=None, origins=origins).near(_GPUS)


def _read_command(data: dict[str, Any], origins: dict[str, str]) -> None:
    """Read a command that is one text, with the variables before it: `FOO=1 python train.py`."""
    if not isinstance(data.get("command"), str):
        return
    words = command_words(data["command"], Sourced(value=None, origins=origins).near("command"))
    env = data.get("env") or {}
    while words and isinstance(env, dict) and (found := ASSIGNED.fullmatch(words[0])):
        env[found[1]] = found[2]
        origins[f"env.{found[1]}"] = origins["command"]
        data["env"] = env
        words = words[1:]
    data["command"] = words


def command_words(text: str, where: str) -> list[str]:
    """Return the words of a command line that needs no shell.

    Raises:
        SpecError: it needs one, or a quote is missing.
    """
    text = re.sub(r"\\\n\s*", " ", text.strip())
    if found := _OF_SHELL.search(_QUOTED.sub("", text)):
        raise SpecError(
            f"{where}: command: {found[0]!r} is for a shell, and a command runs without one",
            f"command: [bash, -c, {json.dumps(text, ensure_ascii=False)}]",
        )
    try:
        return shlex.split(text)
    except ValueError as failure:
        raise SpecError(f"{where}: command: {text[:80]}: {failure}") from None


def _read_bare_words(data: dict[str, Any], origins: dict[str, str]) -> None:
    """Read numbers without a unit as sbatch does, and `gpu` ranks as torchrun does.

    The origin of such a value says how it was read; Python prints none, and may mean seconds.
    """
    resources = data.get("resources")
    if not isinstance(resources, dict):
        return
    for key, typed in resources.items():
        path, text = f"resources.{key}", str(typed)
        place = Sourced(value=None, origins=origins).near(path)
        seconds = slurm_seconds(text) if key == "time" and _MINUTES.fullmatch(text) else None
        size = slurm_memory(text) if key == "mem" and text.isdecimal() else None
        if key == "mem" and text == "0":
            raise SpecError(
                f"{place}: mem 0 is all memory of a node for sbatch; state a size: 480G",
                "hpctrain site show NAME prints that of each partition",
            )
        if place.endswith("="):
            continue
        if seconds or size:
            resources[key] = str(Duration(seconds) if seconds else size)
            said = f"{resources[key]}, as sbatch reads it"
        elif key == "tasks_per_node" and text in _EACH_GPU:
            resources[key] = None
            said = "one rank for each GPU, else one, as torchrun reads it"
        else:
            continue
        origins[path] = f"{place} {text}: {said}"
        if not place.startswith("--"):
            origins[path] = f"{place}: {path} {text}: {said}"


def readings(job: SourcedJob) -> list[str]:
    """Return how the words of a job were read that mean something else elsewhere."""
    return [place for place in job.origins.values() if place.endswith(" reads it")]


def _divide(data: dict[str, Any], origins: dict[str, str], options: Sequence[Override]) -> None:
    """Divide numbers of all nodes, as in sbatch's --ntasks and --gpus, by the nodes of the job.

    Raises:
        SpecError: one is not a multiple of the nodes, or not that of an option for each node.
    """
    own = {one.key: one.value for one in options if not one.of_all_nodes}
    for one in (option for option in options if option.of_all_nodes):
        apply(data, origins, [one])
        _split_type(data, origins)
        nodes, total = lookup(data, "resources.nodes") or 1, lookup(data, one.key)
        if not isinstance(nodes, int) or not isinstance(total, int) or nodes < 1:
            continue
        each = one.key.rpartition(".")[2].replace("_", "-")
        stated = str(own.get(one.key, "")).rpartition(":")[2]
        if stated.isdecimal() and int(stated) * nodes != total:
            raise SpecError(
                f"{one.origin} {total} is not {nodes} x --{each} {own[one.key]}",
                f"--nodes N times --{each} N, or one of the two options alone",
            )
        if total % nodes:
            raise SpecError(
                f"{one.origin} {total}: not a multiple of {nodes} nodes, which get equal numbers",
                f"--{each} N is the number on each node",
            )
        data["resources"][one.key.rpartition(".")[2]] = total // nodes


def command_document(script: Path, arguments: Sequence[str]) -> Document:
    """Return the job of a script and its arguments as a file would state it.

    `.py` runs under python, others as programs.
    """
    program = ["python", str(script)] if script.suffix == ".py" else [str(script.absolute())]
    document = Document("command line", SpecError)
    document.data = {}
    if is_program(str(script)):
        program = [str(script)]
        files = (Path(word) for word in arguments)
        document.data["name"] = _job_name(next((one for one in files if one.suffix), script))
    elif script.suffix == ".sh" and script.is_file() and not os.access(script, os.X_OK):
        program = ["bash", str(script)]
    document.data["command"] = [*program, *arguments]
    document.origins["command"] = "command line"
    return document


def _job_name(path: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "job"


def is_program(word: str) -> bool:
    """Whether a word is no file here, but a program that a shell finds."""
    if "/" in word or Path(word).exists():
        return False
    paths = (f"{folder}/{word}" for folder in os.get_exec_path())
    return bool(_STARTERS.fullmatch(word)) or any(os.access(path, os.X_OK) for path in paths)


def _with_paths(job: SourcedJob, path: Path) -> SourcedJob:
    """Make paths absolute: those in a file are relative to its folder."""
    workdir = job.value.workdir
    secrets = {
        name: where if where == ENV else _absolute(path, where)
        for name, where in job.value.secrets.items()
    }
    value = replace(job.value, workdir=workdir and _absolute(path, workdir), secrets=secrets)
    if value.container is not None and value.container.image.startswith(("./", "../")):
        image = os.path.normpath(path.parent.absolute() / value.container.image)
        container = replace(value.container, image=image)
        value = replace(value, container=container)
    return Sourced(value=value, origins=job.origins)


def _absolute(file: Path, name: str) -> str:
    return str((file.parent / os.path.expanduser(name)).absolute())  # noqa: PTH111 - no error without a home


def check_variables(job: SourcedJob) -> None:
    """Refuse invalid names, variables that the script sets itself, and plain-text secrets.

    Raises:
        SpecError: with file:line; the message does not contain the secret.
    """
    _check_env(job)
    _check_secrets(job)
    for key, text in _texts(job):
        # A script is UTF-8, but the command line may contain other bytes.
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise SpecError(f"{job.near(key)}: {text!r} is not UTF-8 text")
        if found := secret_in(key, text):
            message, name = found
            hint = f"{named_by_job(name)}; programs and setup lines read ${name}"
            raise SpecError(f"{job.near(key)}: {message}", hint)


def _check_env(job: SourcedJob) -> None:
    passed = job.value.container.env if job.value.container else ()
    for key, names in (("env", tuple(job.value.env)), ("container.env", passed)):
        for name in names:
            place = job.near(f"{key}.{name}")
            if not is_variable(name):
                raise SpecError(f"{place}: {name!r} is not a name of an environment variable")
            if looks_secret(name, job.value.env.get(name) if key == "env" else None):
                raise SpecError(
                    f"{place}: {key}.{name} looks like a secret, {KEPT}", named_by_job(name)
                )
    for key, names in (("env", tuple(job.value.env)), ("secrets", tuple(job.value.secrets))):
        for name in filter(is_reserved, names):
            place = job.near(f"{key}.{name}")
            raise SpecError(f"{place}: {key}.{name}: the script or bash sets {name} itself")
    for name, value in job.value.env.items():
        if value == "" and why_not_empty(name):
            place = job.near(f"env.{name}")
            raise SpecError(f"{place}: env.{name} is empty: {why_not_empty(name)}")


def _check_secrets(job: SourcedJob) -> None:
    for name, where in job.value.secrets.items():
        place = job.near(f"secrets.{name}")
        if not is_variable(name):
            raise SpecError(f"{place}: {name!r} is not a name of an environment variable")
        if name in job.value.env:
            raise SpecError(f"{place}: {name} is also in env, so its value would be written")
        if where != ENV and "/" not in where:
            # It may be the secret itself, so it is not repeated.
            raise SpecError(
                f"{place}: secrets.{name} is neither `env` nor the path of a file (with a /)",
                f"export {name} in the shell you submit from and write `{name}: env`, or put it "
                f"into a file of mode 0600 and write its path, e.g. ~/.{name.lower()}",
            )


def _texts(job: SourcedJob) -> Iterator[tuple[str, str]]:
    """Yield all texts that are written unchanged, with their keys."""
    spec = job.value
    for name, value in spec.env.items():
        yield f"env.{name}", str(value)
    for key in ("command", "launcher_args", "setup"):
        for number, text in enumerate(getattr(spec, key)):
            yield f"{key}.{number}", text
    yield "comment", spec.comment or ""
    yield "workdir", spec.workdir or ""
    yield "container.image", spec.container.image if spec.container else ""
    # A flag and its value may be two items.
    yield "command", " ".join(spec.command)


def points_of(
    path: Path,
    arguments: Sequence[str] = (),
    overrides: Sequence[Override] = (),
) -> tuple[Study | None, Sequence[Point]]:
    """Return the study, if it is one, and its points or the job's only one.

    Raises:
        SpecError: the file, an argument or an override is wrong.
    """
    is_file = path.suffix in (".yaml", ".yml")
    if is_file and arguments:
        raise SpecError(
            f"{path}: arguments after -- are for a script; a YAML file contains its own",
            "change the file's command",
        )
    document = _read(path) if is_file else command_document(path, arguments)
    if is_study(document) or any(map(has_sizes, overrides)):
        study = _study_or_sizes(document, overrides, path)
        return study, study.points
    job = build_job(document.data, document.origins, overrides, path)
    return None, (Point(axes={}, job=job),)


def _read(path: Path) -> Document:
    """Read a file; if there is none, and none with a similar name, the hint needs no file."""
    try:
        return read(path, SpecError)
    except SpecError as failure:
        if not path.exists() and not nearest_file(path):
            failure.hint = "a script needs no file: hpctrain render train.py --tasks-per-node 2"
        raise


def _study_or_sizes(job: Document, overrides: Sequence[Override], path: Path) -> Study:
    """Return the study of a file, or of a job or command at several sizes (strong by default).

    Raises:
        SpecError: the file is a study, which has its own axes.
    """
    sizes = [one for one in overrides if has_sizes(one)]
    if not sizes:
        return build_study(job, overrides, path)
    if is_study(job):
        one = sizes[0]
        raise SpecError(
            f"{one.origin} {one.value}: {path} is a study, which has its own axes",
            f"change the axis: --set 'axes.{one.key}=[{one.value}]'",
        )
    others = [one for one in overrides if one not in sizes]
    of_all = next((one for one in sizes if one.of_all_nodes), None)
    nodes = [one for one in overrides if full_key(one.key) == "resources.nodes"]
    if of_all and (nodes or lookup(job.data, "resources.nodes") not in (None, 1)):
        raise SpecError(
            f"{of_all.origin} {of_all.value}: several totals are for one node only",
            f"--{of_all.key.replace('_', '-')} {of_all.value} is the number on each node",
        )
    return build_study(_document(job, sizes), others, path)


def _document(job: Document, sizes: Sequence[Override]) -> Document:
    data: dict[str, Any] = {"job": job.data}
    data["axes"] = {
        one.key: [int(size) for size in re.findall(r"\d+", str(one.value))] for one in sizes
    }
    if isinstance(job.data, dict) and "name" in job.data:
        data["name"] = job.data["name"]
    study = Document(job.label, SpecError)
    study.data = data
    inner = {f"job.{key}" if key else "job": place for key, place in job.origins.items()}
    study.origins = {"": job.label, **inner}
    study.origins |= {f"axes.{one.key}": one.origin for one in sizes}
    return study


MAX_RUNS = 100_000


def build_study(document: Document, overrides: Sequence[Override], path: Path) -> Study:
    """Expand a study file into the points of its grid.

    An override whose key is the study's changes the study; any other changes the job at every
    point.

    Raises:
        SpecError: an error in the study, its job or its grid, with file:line.
    """
    data, origins = copy.deepcopy(document.data), dict(document.origins)
    own = [o for o in overrides if o.key.partition(".")[0] in keys_of(StudySpec)]
    for override in own:
        head, _, axis = override.key.partition(".")
        if head == "axes" and axis:
            check_key(axis, override.origin)
    if "name" not in data:
        data["name"], origins["name"] = path.stem, "default: the file's name"
    apply(data, origins, own)
    study = decode(data, StudySpec, origins, SpecError)
    _check_axes(study)
    for number, pattern in enumerate(study.value.patterns):
        key = "pattern" if isinstance(study.value.pattern, LogPattern) else f"pattern.{number}"
        check_pattern(pattern, f"{study.near(f'{key}.regex')}: {key}")
    job_overrides = [o for o in overrides if o not in own]
    _check_no_clash(study, job_overrides)
    points = _expand(study, job_overrides, path)
    return Study(spec=study.value, points=points, baseline=_baseline(study))


def _check_axes(study: Sourced[StudySpec]) -> None:
    runs = study.value.repetitions
    for axis, values in study.value.axes.items():
        where = study.origin(f"axes.{axis}")
        check_key(axis, where)
        if not values:
            raise SpecError(f"{where}: the axis {axis!r} has no values")
        if any(values.count(value) > 1 for value in values):
            raise SpecError(f"{where}: the axis {axis!r} has the same value twice")
        runs *= len(values)
    if runs > MAX_RUNS:
        raise SpecError(
            f"{study.origin('axes')}: {runs} runs (points x repetitions); at most {MAX_RUNS}"
        )
    full = [full_key(axis) for axis in study.value.axes]
    if len(set(full)) < len(full):
        raise SpecError(f"{study.origin('axes')}: two axes name the same key of the job")


def _check_no_clash(study: Sourced[StudySpec], overrides: Sequence[Override]) -> None:
    axes = {full_key(axis): axis for axis in study.value.axes}
    for override in overrides:
        axis = axes.get(full_key(override.key))
        if axis is not None:
            raise SpecError(
                f"{override.origin}: {axis!r} is an axis of this study",
                f"change the axis: --set 'axes.{axis}=[{override.value}]'",
            )


def _expand(
    study: Sourced[StudySpec], overrides: Sequence[Override], path: Path
) -> tuple[Point, ...]:
    data, origins, job_path = _job_data(study, path)
    grid, points = study.value.axes, []
    for values in itertools.product(*grid.values()):
        axes = dict(zip(grid, values, strict=True))
        own = [
            Override(key=name, value=copy.deepcopy(value), origin=study.origin(f"axes.{name}"))
            for name, value in axes.items()
        ]
        job = build_job(data, origins, [*overrides, *own], job_path)
        points.append(Point(axes=axes, job=job))
    return tuple(points)


def _job_data(study: Sourced[StudySpec], path: Path) -> tuple[Any, dict[str, str], Path]:
    """Return the job's values: inline, or from the file that the study names."""
    job = study.value.job
    if isinstance(job, str):
        try:
            document = read(path.parent / job, SpecError)
        except SpecError as failure:
            failure.message = f"{study.origin('job')}: job: {failure.message}"
            raise
        return document.data, document.origins, path.parent / job
    inline = {
        key.partition(".")[2]: origin
        for key, origin in study.origins.items()
        if key.startswith("job.")
    }
    named = {"name": study.value.name, **job}
    return named, {"": study.origin("job"), "name": study.origin("name"), **inline}, path


def _baseline(study: Sourced[StudySpec]) -> dict[str, Any]:
    """Return the axis values of the baseline; by default the smallest sizes."""
    axes, chosen = dict(study.value.axes), dict(study.value.baseline)
    if not chosen:
        sizes = [axis for axis in axes if full_key(axis).rpartition(".")[2] in SIZE_AXES]
        return {axis: min(axes[axis]) for axis in sizes}
    for axis, value in chosen.items():
        where = study.origin(f"baseline.{axis}")
        if axis not in axes:
            raise SpecError(
                f"{where}: the baseline names {axis!r}, which is not an axis"
                f"{nearest(axis, axes)}; axes: {', '.join(axes)}"
            )
        if value not in axes[axis]:
            raise SpecError(
                f"{where}: the baseline {axis}={value} is not in the grid; "
                f"{axis} has {', '.join(map(str, axes[axis]))}"
            )
    return chosen
