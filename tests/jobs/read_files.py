"""Job and study files as the command line reads them."""

from collections.abc import Sequence
from pathlib import Path

from hpc_train.base.errors import SpecError
from hpc_train.base.values import Sourced
from hpc_train.base.yamlfile import read
from hpc_train.jobs.job import JobSpec
from hpc_train.jobs.override import Override
from hpc_train.jobs.read_job import build_job, build_study
from hpc_train.jobs.study import Study


def load_job(path: Path, overrides: Sequence[Override]) -> Sourced[JobSpec]:
    document = read(path, SpecError)
    return build_job(document.data, document.origins, overrides, path)


def load_study(path: Path, overrides: Sequence[Override]) -> Study:
    return build_study(read(path, SpecError), overrides, path)
