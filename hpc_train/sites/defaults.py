"""What fills the keys that a job leaves out: variables of sbatch, then the user's own defaults."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hpc_train.base.data_folders import DEFAULTS_FILE, user_folder
from hpc_train.base.decode import decode, keys_of
from hpc_train.base.errors import SpecError
from hpc_train.base.value import Sourced
from hpc_train.base.yamlfile import read
from hpc_train.jobs.job import Defaults, SiteDefaults, SourcedJob
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.profile import SiteProfile

# Key of the job -> the variables of sbatch and srun, in order.
_VARIABLES = {
    "account": ("SBATCH_ACCOUNT", "SLURM_ACCOUNT"),
    "partition": ("SBATCH_PARTITION",),
    "qos": ("SBATCH_QOS",),
}


def read_defaults() -> Sourced[Defaults]:
    """Return the user's defaults; without the file there are none.

    Raises:
        SpecError: the file is wrong.
    """
    path = user_folder() / DEFAULTS_FILE
    if not path.is_file():
        return Sourced(value=Defaults(), origins={})
    document = read(path, SpecError, _short(path))
    return decode(document.data, Defaults, document.origins, SpecError)


def fill(job: SourcedJob, site: SiteProfile, own: Sourced[Defaults]) -> tuple[SourcedJob, str]:
    """Return a job with what it leaves out, and a notice of it; empty if nothing was filled."""
    found = dict(_found(job, site, own))
    if not found:
        return job, ""
    spec = replace(job.value, **{key: value for key, (value, _) in found.items()})
    origins = {**job.origins, **{key: origin for key, (_, origin) in found.items()}}
    said = (
        f"{key}{f' {value}' if isinstance(value, str) else ''} ({origin})"
        for key, (value, origin) in found.items()
    )
    return Sourced(value=spec, origins=origins), f"at {site.name}: {', '.join(said)}"


def _found(
    job: SourcedJob, site: SiteProfile, own: Sourced[Defaults]
) -> Iterator[tuple[str, tuple[Any, str]]]:
    batch = find_batch_system(site.scheduler)
    here = own.value.sites.get(site.name, SiteDefaults())
    for key in keys_of(SiteDefaults):
        if getattr(job.value, key):
            continue
        names = _VARIABLES.get(key, ()) if "SBATCH" in batch.prefix else ()
        variable = next((name for name in names if os.environ.get(name)), "")
        if variable:
            yield key, (os.environ[variable], f"${variable}")
        elif value := getattr(here, key):
            yield key, (value, own.near(f"sites.{site.name}.{key}"))


def _short(path: Path) -> str:
    home = os.environ.get("HOME", "")
    return f"~/{path.relative_to(home)}" if home and path.is_relative_to(home) else str(path)
