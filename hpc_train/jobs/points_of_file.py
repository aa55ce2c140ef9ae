"""A file or a command -> the points of a study, or the only one of a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpc_train.base.errors import SpecError
from hpc_train.base.yamlfile import Document, nearest_file, read
from hpc_train.jobs.override import Override, has_sizes
from hpc_train.jobs.read_job import build_job, command_document, is_study
from hpc_train.jobs.study import Point, Study


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
        # A single job, the most frequent input, needs no module of studies.
        from hpc_train.jobs.sizes_option import study_or_sizes

        study = study_or_sizes(document, overrides, path)
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
