"""Options that a job gives its launcher, and that the plan has given already."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hpc_train.base.errors import PlanError, UnknownNameError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.sites.profile import SiteProfile

Jobs = Callable[..., Sourced[JobSpec]]
Sites = Callable[..., Sourced[SiteProfile]]


@pytest.mark.parametrize(
    ("launcher", "words", "said"),
    [
        ("srun", ("--ntasks=2",), "--ntasks by itself; say it with resources.tasks_per_node"),
        ("srun", ("--export=NONE",), "--export by itself; say it with env"),
        ("torchrun", ("--nnodes=2",), "--nnodes by itself; say it with resources.nodes"),
        ("torchrun", ("--nnodes", "2"), "--nnodes by itself; say it with resources.nodes"),
        ("torchrun", ("--master_port=1",), "--master-port by itself; take it out"),
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
