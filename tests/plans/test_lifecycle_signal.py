"""The signal before the time limit: who gets it, and where there can be none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.scripts.render import render_script
from hpc_train.sites.profile import SiteProfile

Jobs = Callable[..., Sourced[JobSpec]]
Sites = Callable[..., Sourced[SiteProfile]]
LAUNCHERS = ["srun", "torchrun", "mpirun", "ibrun", "accelerate", "deepspeed", "spawn", "single"]
OFFERED = {"launchers": {"default": "srun", "allowed": LAUNCHERS}}
LEAD = {"signal_before_end": "2m"}


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "accelerate", "deepspeed", "spawn"])
def test_slurm_signals_the_ranks_that_it_knows(job: Jobs, slurm: Sites, launcher: str) -> None:
    plan = make_plan(job({"nodes": 2}, launcher=launcher, **LEAD), slurm(**OFFERED))
    assert dict(plan.directives)["signal"] == "USR1@120"
    assert not plan.passes_signal


@pytest.mark.parametrize("launcher", ["mpirun", "single"])
def test_the_script_passes_on_what_slurm_cannot_bring(
    job: Jobs, slurm: Sites, launcher: str
) -> None:
    plan = make_plan(job(launcher=launcher, **LEAD), slurm(**OFFERED))
    assert dict(plan.directives)["signal"] == "B:USR1@120"
    assert plan.passes_signal


@pytest.mark.parametrize(
    ("resources", "keys", "message"),
    [
        ({"time": "2m"}, {}, "at most 119 s (the time limit is 00:02:00)"),
        ({}, {"signal_before_end": "1d"}, "at most 65535 s"),
        ({}, {"launcher": "ibrun"}, "which signals ibrun hands on"),
    ],
)
def test_what_cannot_be(
    job: Jobs, slurm: Sites, resources: dict[str, Any], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError) as failure:
        make_plan(job(resources, **{**LEAD, **keys}), slurm(**OFFERED))
    assert failure.value.message.startswith("job.yaml:1: ")
    assert message in failure.value.message


def test_a_run_of_several_in_one_allocation(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match="needs a time limit of the run's own"):
        make_plan(job({"time": "1h"}, **LEAD), slurm(), nested=True)


def test_no_scheduler_sends_none(job: Jobs, local: Sourced[SiteProfile]) -> None:
    plan = make_plan(job(**LEAD), local)
    assert any("local sends no signal" in text for text in plan.warnings)
    assert plan.directives == ()


SITE_LEAD = {"lifecycle": {"signal_lead": "5m"}}


def test_a_job_that_queues_itself_again_takes_the_lead_of_its_site(job: Jobs, slurm: Sites) -> None:
    plan = make_plan(job({"time": "1h"}, lifecycle={}), slurm(**OFFERED, **SITE_LEAD))
    assert dict(plan.directives)["signal"] == "USR1@300"
    assert plan.settings["signal_before_end"].why.startswith("the site recommends it")
    assert plan.warnings == ()
    # Neither against the job's own key, nor for one that ends at its limit.
    own = make_plan(job({"time": "1h"}, lifecycle={}, **LEAD), slurm(**OFFERED, **SITE_LEAD))
    assert dict(own.directives)["signal"] == "USR1@120"
    assert "signal" not in dict(make_plan(job(), slurm(**OFFERED, **SITE_LEAD)).directives)


@pytest.mark.parametrize("limit", ["1h", "4m"])
def test_without_a_signal_the_time_limit_is_the_end(job: Jobs, slurm: Sites, limit: str) -> None:
    site = slurm(**OFFERED, **(SITE_LEAD if limit == "4m" else {}))
    plan = make_plan(job({"time": limit}, lifecycle={}), site)
    (warning,) = (text for text in plan.warnings if "signal_before_end: 5m" in text)
    assert warning.startswith("job.yaml:1: the time limit ends the job without a warning")


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "ibrun", "single"])
def test_a_file_asks_the_ranks_of_any_launcher(job: Jobs, slurm: Sites, launcher: str) -> None:
    asked = job(launcher=launcher, lifecycle={"stop_by": "file"}, **LEAD)
    plan = make_plan(asked, slurm(**OFFERED))
    assert dict(plan.directives)["signal"] == "B:USR1@120"
    assert not plan.passes_signal
    text = render_script(plan).text
    assert "hpctrain_usr1=file" in text
    assert "usr1" not in render_script(make_plan(job(lifecycle={}), slurm(**OFFERED))).text
