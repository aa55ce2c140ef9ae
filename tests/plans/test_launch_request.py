"""Options that a job gives its launcher, and that the plan has given already."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hpc_train.errors import PlanError
from hpc_train.model.job import JobSpec
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced
from hpc_train.plans.build import make_plan

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
