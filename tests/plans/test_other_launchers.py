"""A message that refuses a launcher names only those that start the job on its site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from hpc_train.base.data_folders import profile_folder
from hpc_train.base.errors import PlanError
from hpc_train.base.registry import BUILT_IN
from hpc_train.base.values import Duration, Sourced
from hpc_train.jobs.job import Elastic, SourcedJob
from hpc_train.plans.build import make_plan
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.plans.sample_jobs import queue_slots, sample
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile, SourcedSite

SHIPPED = sorted(path.stem for path in profile_folder().glob("*.yaml"))
NAMES = tuple(BUILT_IN["launchers"])
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


def test_a_site_may_offer_no_other(slurm: Any) -> None:
    launchers = {"default": "single", "allowed": ["single"]}
    site: Sourced[SiteProfile] = slurm(launchers=launchers)
    with pytest.raises(PlanError, match="runs one process") as failure:
        make_plan(job(site, "single", {}), site)
    assert failure.value.hint.startswith("big offers no launcher for such a job, or one task")


def test_ibrun_needs_slurm() -> None:
    local = load_site("local")
    names = ("ibrun", *local.value.launchers.allowed)
    launchers = msgspec.structs.replace(local.value.launchers, allowed=names)
    site = Sourced(
        value=msgspec.structs.replace(local.value, launchers=launchers), origins=local.origins
    )
    with pytest.raises(PlanError, match="ibrun starts ranks in a job of Slurm") as failure:
        make_plan(job(site, "ibrun", {}), site)
    assert "torchrun" in list(named(failure.value))
    assert [name for name in NAMES if find_launcher(name).slurm_only] == ["ibrun"]
