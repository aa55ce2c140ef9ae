"""The twins of seven sites give the right answer to jobs as users write them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from hpc_train.lab.twins.start_and_stop import Twin, read, stop
from tests.conftest import Hpctrain, refuse
from tests.end_to_end.twin_jobs import TWIN_JOBS

pytestmark = pytest.mark.slurm

SITES = [
    pytest.param(name, marks=() if name == "perlmutter" else pytest.mark.long)
    for name in dict.fromkeys(job.site for job in TWIN_JOBS)
]


@pytest.fixture(scope="module", params=SITES)
def twin(hpctrain: Hpctrain, request: pytest.FixtureRequest) -> Iterator[Twin]:
    if os.geteuid() != 0:
        refuse("a twin needs root")
    done = hpctrain("twin", request.param)
    assert done.returncode == 0, done.stderr
    found = read(request.param)
    assert found is not None
    yield found
    stop(request.param)


def test_the_answers_of_a_twin(twin: Twin) -> None:
    jobs = [job for job in TWIN_JOBS if job.site == twin.name]
    wrong = {}
    for job in jobs:
        said = answer(twin, job.options)
        if not re.search(job.answer, said):
            wrong[job.options] = said
    assert wrong == {}


def answer(twin: Twin, options: str) -> str:
    """Return what sbatch prints for a job."""
    done = subprocess.run(
        ["sbatch", "--test-only", *options.split(), "--wrap=true"],
        capture_output=True,
        text=True,
        env={**os.environ, "SLURM_CONF": twin.slurm_conf},
        timeout=240,
    )
    return done.stderr
