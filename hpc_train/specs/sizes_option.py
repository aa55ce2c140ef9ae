"""`--nodes 1,2,4` of the command line -> a study of these sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.errors import SpecError
from hpc_train.model.study import Study
from hpc_train.specs.job import SiteNames, is_study
from hpc_train.specs.override import Override, has_sizes
from hpc_train.specs.study import build_study
from hpc_train.yamlfile import Document


def study_or_sizes(
    job: Document, overrides: Sequence[Override], path: Path, names: SiteNames | None = None
) -> Study:
    """Return the study of a file, or of a job or command at several sizes (strong by default).

    Raises:
        SpecError: the file is a study, which has its own axes.
    """
    sizes = [one for one in overrides if has_sizes(one)]
    if not sizes:
        return build_study(job, overrides, path, names)
    if is_study(job):
        one = sizes[0]
        raise SpecError(
            f"{one.origin} {one.value}: {path} is a study, which has its own axes",
            f"change the axis: --set 'axes.{one.key}=[{one.value}]'",
        )
    others = [one for one in overrides if one not in sizes]
    return build_study(_document(job, sizes), others, path, names)


def _document(job: Document, sizes: Sequence[Override]) -> Document:
    data: dict[str, Any] = {"job": job.data, "scaling": "strong"}
    data["axes"] = {
        one.key: [int(size) for size in re.findall(r"\d+", str(one.value))] for one in sizes
    }
    if isinstance(job.data, dict) and "name" in job.data:
        data["name"] = job.data["name"]
    study = Document(job.label, SpecError)
    study.data = data
    inner = {f"job.{key}" if key else "job": place for key, place in job.origins.items()}
    study.origins = {"": job.label, **inner, "scaling": "the default of a study of sizes"}
    study.origins |= {f"axes.{one.key}": one.origin for one in sizes}
    return study
