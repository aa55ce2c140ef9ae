"""A file or a command -> the points of a study, or the only one of a job."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.base.decode import decode, keys_of
from hpc_train.base.errors import SpecError, nearest
from hpc_train.base.value import Sourced
from hpc_train.base.yamlfile import Document, lookup, nearest_file, read
from hpc_train.jobs.log_selection import LogPattern, check_pattern
from hpc_train.jobs.override import Override, apply, check_key, full_key, has_sizes
from hpc_train.jobs.read_job import build_job, command_document, is_study
from hpc_train.jobs.study import SIZE_AXES, Point, Study, StudySpec


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
            f"{of_all.origin} {of_all.value}: several numbers of all nodes, and several nodes",
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
    _check_patterns(study)
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


def _check_patterns(study: Sourced[StudySpec]) -> None:
    for number, pattern in enumerate(study.value.patterns):
        key = "pattern" if isinstance(study.value.pattern, LogPattern) else f"pattern.{number}"
        check_pattern(pattern, f"{study.near(f'{key}.regex')}: {key}")


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
