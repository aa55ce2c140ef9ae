"""What a site wants each job to say, and how accounts are named there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.sites.profile import SiteProfile

Jobs = Callable[..., Sourced[JobSpec]]
Sites = Callable[..., Sourced[SiteProfile]]


@pytest.mark.parametrize("key", ["partition", "account", "qos", "time", "mem", "constraint"])
def test_what_a_job_must_say(job: Jobs, slurm: Sites, key: str) -> None:
    full = f"resources.{key}" if key in ("time", "mem") else key
    word: Any = {"time": "1h", "mem": "1G"}.get(key, "x")
    # The text of an error is the message and, in the next line, what to do.
    wrong = rf"^job\.yaml.*: big needs an? {key} \(big\.yaml\)(?:\n|$)"
    with pytest.raises(PlanError, match=wrong) as no:
        make_plan(job(), slurm(required=[key]))
    assert f"--{key} " in no.value.hint
    given = job({key: word}) if full != key else job(**{key: word})
    make_plan(given, slurm(required=[key]))


def test_accounts_have_a_form(job: Jobs, slurm: Sites) -> None:
    account = {
        "required": True,
        "pattern": r"project_\d+",
        "example": "project_462000000",
        "command": "csc-projects",
    }
    site = slurm(account=account)
    with pytest.raises(PlanError, match="big needs an account, such as project_462000000") as none:
        make_plan(job(), site)
    assert "yours: csc-projects" in none.value.hint
    with pytest.raises(PlanError, match=r"^job\.yaml:1: account = 'x', but big's are named like"):
        make_plan(job(account="x"), site)
    with pytest.raises(PlanError, match="are named like"):
        make_plan(job(account="project_1x"), site)
    assert dict(make_plan(job(account="project_1"), site).directives)["account"] == "project_1"


def test_a_suffix_may_be_part_of_the_form(job: Jobs, slurm: Sites) -> None:
    site = slurm(
        account={"pattern": r"\w+@(a100|v100)"},
        partitions=[{"name": "p", "default": True, "select": {"account_suffix": "@a100"}}],
    )
    for given in ("abc", "abc@a100"):
        assert dict(make_plan(job(account=given), site).directives)["account"] == "abc@a100"
