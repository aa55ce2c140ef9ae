"""The job of a run and `--set KEY=VALUE` -> the job planned again, as for a submission."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.data_folders import template_path
from hpc_train.errors import SpecError, StoreError
from hpc_train.model.job import SourcedJob
from hpc_train.model.run import PROFILE, Manifest, RunFolder
from hpc_train.model.study import Point
from hpc_train.model.value import Value, encode_unit
from hpc_train.pipeline.prepared import Prepared, PreparedSite
from hpc_train.pipeline.render import prepare_points
from hpc_train.pipeline.submission_checks import check_start
from hpc_train.sites.load import load_site
from hpc_train.sites.search import find_profile
from hpc_train.specs.job import build_job
from hpc_train.specs.override import Override, key_paths, parse_setting


def changed_job(folder: RunFolder, manifest: Manifest, settings: Sequence[str]) -> Prepared:
    """Plan the job of a run again for its site, with other values of some keys.

    Raises:
        StoreError: the run is one of a study, or the setting is the name of its folder.
        HpcTrainError: a wrong setting, or a job that `submit` would refuse.
    """
    options = " ".join(f"--set {shlex.quote(text)}" for text in settings)
    if manifest.study is not None:
        raise StoreError(
            f"{manifest.run_id}: --set cannot change a run of a study: it would have another job "
            "than the other runs of its point",
            f"hpctrain submit STUDY.yaml {options} submits each changed point as new runs",
        )
    overrides = [parse_setting(text) for text in settings]
    if any(override.key == "name" for override in overrides):
        raise SpecError(
            f"--set name: a retry stays in the folder {folder.path.parent}",
            "hpctrain submit FILE --name NAME submits into another one",
        )
    job = _job_of(folder, manifest, overrides)
    prepared = _prepare(job, _profile(manifest))
    check_start(prepared)
    return prepared


def _job_of(folder: RunFolder, manifest: Manifest, overrides: Sequence[Override]) -> SourcedJob:
    data = _stated(manifest.spec)
    paths = (path for key, value in data.items() for path in key_paths(key, value))
    origins = dict.fromkeys(paths, str(folder.manifest))
    return build_job(data, origins, overrides, folder.manifest, manifest.plan.site)


def _stated(value: Value) -> dict[str, Any]:
    """Return the values that are not defaults, as a file would state them."""
    return {
        field.name: _stated(inner)
        if isinstance(inner, Value)
        else msgspec.json.decode(msgspec.json.encode(inner, enc_hook=encode_unit))
        for field in msgspec.structs.fields(value)
        if (inner := getattr(value, field.name)) != field.default
    }


def _profile(manifest: Manifest) -> Path:
    """Return the profile that the run was planned with, or by name if the file was removed."""
    file = str(manifest.provenance.get(PROFILE, ""))
    return Path(file) if file and Path(file).is_file() else find_profile(manifest.plan.site)


def _prepare(job: SourcedJob, profile: Path) -> Prepared:
    folders = template_path(profile)
    site = PreparedSite(profile=profile.absolute(), site=load_site(profile), folders=folders)
    point = Point(axes={}, job=job)
    points, _ = prepare_points((point,), {"": site}, nested=False, plain=False)
    plan = points[0].plan
    return Prepared(
        name=plan.name,
        sites=(site,),
        study=None,
        points=points,
        warnings=tuple(dict.fromkeys(plan.warnings)),
    )
