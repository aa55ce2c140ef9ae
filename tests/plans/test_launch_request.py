"""Which launchers a site offers, the words that a job gives them, and what hints name instead."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from hpc_train.base.data_folders import profile_folder
from hpc_train.base.errors import PlanError, UnknownNameError
from hpc_train.base.values import Duration, Sourced
from hpc_train.jobs.job import Elastic, SourcedJob
from hpc_train.plans.build import make_plan
from hpc_train.plans.sample_jobs import queue_slots, sample
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SourcedSite
from tests.plans.conftest import Jobs, Sites


@pytest.mark.parametrize(
    ("launcher", "words", "said"),
    [
        ("srun", ("--ntasks=2",), "--ntasks itself; use resources.tasks_per_node"),
        ("srun", ("--export=NONE",), "--export itself; use env"),
        ("torchrun", ("--nnodes=2",), "--nnodes itself; use resources.nodes"),
        ("torchrun", ("--nnodes", "2"), "--nnodes itself; use resources.nodes"),
        ("torchrun", ("--master_port=1",), "--master-port itself; leave it out"),
    ],
)
def test_what_the_plan_says_is_not_said_again(
    job: Jobs, slurm: Sites, launcher: str, words: tuple[str, ...], said: str
) -> None:
    wanted = job({"nodes": 2}, launcher=launcher, launcher_args=words, command=("python", "t.py"))
    with pytest.raises(PlanError) as failure:
        make_plan(wanted, slurm())
    assert said in f"{failure.value.message}; {failure.value.hint}"


@pytest.mark.parametrize(
    ("launcher", "words"),
    [
        ("srun", ("--kill-on-bad-exit=0", "--label", "--wait=9")),
        ("torchrun", ("--log-dir", "x", "--tee", "3")),
        ("mpirun", ("--mca", "a", "b", "--mca", "c", "d")),
    ],
)
def test_other_options_are_the_jobs(
    job: Jobs, slurm: Sites, launcher: str, words: tuple[str, ...]
) -> None:
    # Options of the program may have the names of the launcher's.
    command = ("python", "t.py", "--nodes=3", "--nnodes", "4", "--label", "--tee", "--mca")
    wanted = job({"nodes": 2}, launcher=launcher, launcher_args=words, command=command)
    assert make_plan(wanted, slurm()).launch.argv


def test_the_job_wins_over_the_site_over_the_rule(job: Jobs, slurm: Sites) -> None:
    site = slurm(env={"A": "site", "B": "site"}, env_why={"B": "needed"})
    plan = make_plan(job(env={"A": "job", "OMP_NUM_THREADS": 7}, launcher="torchrun"), site)
    assert dict(plan.env)["A"] == "job"
    assert plan.settings["env.A"].origin == "job.yaml:8"
    assert plan.settings["env.B"].why == "needed"
    assert dict(plan.env)["OMP_NUM_THREADS"] == "7"
    assert plan.launcher == "torchrun"
    assert make_plan(job(), site).launcher == "srun"


def test_a_forbidden_launcher_is_refused_with_the_sites_reason(job: Jobs, slurm: Sites) -> None:
    launchers = {"default": "srun", "allowed": ["srun"], "forbidden": {"mpirun": "no ssh here"}}
    with pytest.raises(PlanError, match=r"job\.yaml:1: big forbids mpirun: no ssh here"):
        make_plan(job(launcher="mpirun"), slurm(launchers=launchers))
    with pytest.raises(PlanError, match="big does not offer torchrun; allowed: srun"):
        make_plan(job(launcher="torchrun"), slurm(launchers=launchers))


def test_an_unknown_launcher_names_the_nearest(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(
        UnknownNameError, match="unknown launcher 'torchrn'; did you mean 'torchrun'"
    ):
        make_plan(job(launcher="torchrn"), slurm())


SHIPPED = sorted(path.stem for path in profile_folder().glob("*.yaml"))
# Keys of a job that some launchers cannot serve.
WISHES: tuple[dict[str, Any], ...] = (
    {},
    {"signal_before_end": Duration.parse("1m")},
    {"elastic": Elastic(max_restarts=1)},
    {"mpi": True},
    {"backend": "mpi"},
)


def job(site: SourcedSite, launcher: str, wish: dict[str, Any]) -> SourcedJob:
    """Return a job with two ranks on each node, on two nodes if the site has several."""
    slot = next(iter(queue_slots(site.value)))
    nodes = max(slot.least, 1 if site.value.scheduler == "local" else 2)
    made = sample(slot, launcher, nodes=nodes, tasks_per_node=2)
    return with_launcher(made, launcher, wish)


def with_launcher(made: SourcedJob, launcher: str, wish: dict[str, Any]) -> SourcedJob:
    spec = msgspec.structs.replace(made.value, launcher=launcher, **wish)
    return Sourced(value=spec, origins={"": "job.yaml"})


def everywhere(site: SourcedSite) -> SourcedSite:
    """Return the profile with its launchers as the only change: `single` is offered, too."""
    launchers = site.value.launchers
    allowed = tuple(dict.fromkeys((*launchers.allowed, "single")))
    kept = msgspec.structs.replace(launchers, allowed=allowed)
    return Sourced(value=msgspec.structs.replace(site.value, launchers=kept), origins=site.origins)


def named(failure: PlanError) -> Iterator[str]:
    """Yield the launchers in a hint; a name also occurs as a backend or a program."""
    for match in re.finditer(r"--launcher (?:with one of )?([a-z, ]+?)(?=, or |$)", failure.hint):
        yield from match[1].split(", ")


def refusals(site: SourcedSite) -> Iterator[tuple[SourcedJob, dict[str, Any], PlanError]]:
    for launcher in everywhere(site).value.launchers.allowed:
        for wish in WISHES:
            made = job(site, launcher, wish)
            try:
                make_plan(made, everywhere(site))
            except PlanError as failure:
                yield made, wish, failure


@pytest.mark.parametrize("name", SHIPPED)
def test_each_launcher_in_a_hint_starts_the_job(name: str) -> None:
    site = load_site(name)
    found = [
        (made, wish, other) for made, wish, failure in refusals(site) for other in named(failure)
    ]
    assert found, "no message names a launcher"
    for made, wish, other in found:
        assert other in site.value.launchers.allowed, (name, wish, other)
        make_plan(with_launcher(made, other, wish), site)
