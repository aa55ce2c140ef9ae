"""Each shipped site's twin takes the sample jobs, and refuses what hpctrain refuses."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.lab.twins.slurm_conf import queues
from hpc_train.lab.twins.start_and_stop import Twin, read, stop
from hpc_train.plans.build import make_plan
from hpc_train.plans.sample_jobs import sample_jobs
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from tests.conftest import ROOT, Hpctrain, refuse

pytestmark = pytest.mark.slurm

Site = Sourced[SiteProfile]
SITES = {
    site.value.name: site
    for path in sorted((ROOT / "site_profiles").glob("*.yaml"))
    if (site := load_site(str(path))).value.scheduler == "slurm" and not site.value.family
}
# The rules of each kind of site; the others are long.
FEW = ("delta", "frontier", "isambard-ai")
SOME = [pytest.param(name, marks=() if name in FEW else pytest.mark.long) for name in SITES]
AT_ONCE = 4
VALUES = {"gres": "gpu:1", "mem": "1G"}


@pytest.fixture(scope="module")
def twins(hpctrain: Hpctrain, request: pytest.FixtureRequest) -> Iterator[dict[str, Twin]]:
    """Start those that are asked for, several at once: most of the time each waits for a daemon."""

    def started(name: str) -> Twin:
        done = hpctrain("twin", name)
        assert done.returncode == 0, done.stderr
        twin = read(name)
        assert twin is not None
        return twin

    if os.geteuid() != 0:
        refuse("a twin needs root")
    items = [item for item in request.session.items if item.path == request.path]
    calls = [item.callspec for item in items if isinstance(item, pytest.Function)]
    names = sorted({str(call.params["name"]) for call in calls})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            yield dict(zip(names, pool.map(started, names), strict=True))
        finally:
            assert all(pool.map(stop, names))


@pytest.mark.parametrize("name", SOME)
def test_sample_jobs_are_taken(twins: dict[str, Twin], name: str, tmp_path: Path) -> None:
    site = SITES[name]
    # The twin has only the partitions that the profile names.
    jobs = [job for job in sample_jobs(site.value) if job.value.partition in partitions(site)]
    scripts = {script(job, site): job.origin("") for job in jobs}
    assert scripts
    said = answers(twins[name], scripts, tmp_path)
    refused = {scripts[text]: words for text, words in said.items() if "to start at" not in words}
    assert refused == {}


@pytest.mark.parametrize("name", [one for one in SOME if SITES[str(one.values[0])].value.forbidden])
def test_forbidden_options_are_refused(twins: dict[str, Twin], name: str, tmp_path: Path) -> None:
    site = SITES[name]
    lines = script(next(sample_jobs(site.value)), site).splitlines(keepends=True)
    # sbatch itself would refuse to ask for GPUs in two ways.
    head, *rest = (line for line in lines if not re.search(r"--(gpus|gres)", line))
    reasons = {option.lstrip("-"): why for option, why in site.value.forbidden.items()}
    scripts = {
        "".join((head, f"#SBATCH --{option}={VALUES.get(option, '1')}\n", *rest)): option
        for option in reasons
    }
    for text, words in answers(twins[name], scripts, tmp_path).items():
        option = scripts[text]
        assert f"refuses --{option}: {reasons[option]}" in words


def partitions(site: Site) -> set[str | None]:
    """Return what a job may name: a partition of the profile or of its twin, or none."""
    return {None, *queues(site.value), *(one.name for one in site.value.partitions)}


def script(job: Sourced[JobSpec], site: Site) -> str:
    """Return what Slurm reads of a job's script; the same for many launchers."""
    lines = render_script(make_plan(job, site)).text.splitlines()
    directives = [line for line in lines if line.startswith("#SBATCH")]
    named = [line for line in directives if not re.search(r"--(job-name|comment|output)", line)]
    return "\n".join(("#!/bin/bash", *named, "true\n"))


def answers(twin: Twin, scripts: Iterable[str], folder: Path) -> dict[str, str]:
    """Return what sbatch thinks of each script."""
    environment = {**os.environ, "SLURM_CONF": twin.slurm_conf}

    def ask(pair: tuple[int, str]) -> str:
        path = folder / f"{pair[0]}.sbatch"
        path.write_text(pair[1])
        argv = ["sbatch", "--test-only", str(path)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=240, env=environment)
        return done.stderr

    texts = tuple(scripts)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(texts, pool.map(ask, enumerate(texts)), strict=True))
