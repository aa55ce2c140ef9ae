"""Check of a profile without a scheduler: loading, dates of sources, sample jobs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from pathlib import Path

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import HpcTrainError
from hpc_train.base.finding import Finding
from hpc_train.base.value import Value
from hpc_train.jobs.job import SourcedJob
from hpc_train.lint.lint_file import make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.plans import sample_jobs as samples
from hpc_train.plans.build import make_plan
from hpc_train.plans.queue_limits import partition_named
from hpc_train.scripts.render import render_script
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.merge import unknown_covers
from hpc_train.sites.profile import SourcedSite
from hpc_train.sites.search import find_profile

STALE_DAYS = 365
_LINTED_NODES = 2


class ProfileFinding(Finding, frozen=True, kw_only=True):
    """One finding on a profile; an error makes it unusable."""

    place: str


class ProfileCheck(Value, frozen=True, kw_only=True):
    """The findings, and the number of sample jobs that were planned, rendered and checked.

    `loaded` is false if the file is no valid profile; the only finding is then its error.
    """

    findings: tuple[ProfileFinding, ...]
    jobs: int
    loaded: bool = True


def check_site(name: str, today: datetime.date) -> ProfileCheck:
    """Load a profile, and plan, render and lint its sample jobs.

    Raises:
        HpcTrainError: no such profile or file.
    """
    path = find_profile(name)
    try:
        site = load_site(path)
    except HpcTrainError as failure:
        if not path.is_file():
            raise
        return ProfileCheck(findings=(_error("", failure),), jobs=0, loaded=False)
    jobs = list(samples.sample_jobs(site.value))
    nameless = samples.nameless_job(site.value)
    jobs += [nameless] if nameless else []
    findings = [
        *_age(site, today),
        *_sources(site, path),
        *_queues(site),
        *_jobs(jobs, site, path),
    ]
    return ProfileCheck(findings=tuple(dict.fromkeys(findings)), jobs=len(jobs))


def _jobs(jobs: Iterable[SourcedJob], site: SourcedSite, path: Path) -> Iterator[ProfileFinding]:
    linter = make_linter(site=str(path))
    folders, profile = template_path(path), site.value
    first = profile.partitions[0].name if profile.partitions else None
    for job in jobs:
        place, spec = job.origin(""), job.value
        try:
            text = render_script(make_plan(job, site), folders).text
        except HpcTrainError as failure:
            yield _error(place, failure)
            continue
        # Not every combination of launcher and partition; scripts for more nodes differ from that
        # for two only in the number.
        usual = spec.launcher == profile.launchers.default or spec.partition in (first, None)
        if usual and spec.resources.nodes <= _LINTED_NODES:
            for found in lint_script(text, linter.context, linter.rules):
                if found.severity != "info":
                    message = f"{found.id}: {found.message}"
                    yield ProfileFinding(severity=found.severity, place=place, message=message)


def _error(place: str, failure: HpcTrainError) -> ProfileFinding:
    text = failure.message.removeprefix(f"{place}: ")
    message = f"{text}; {failure.hint}" if failure.hint else text
    return ProfileFinding(severity="error", place=place, message=message)


def _queues(site: SourcedSite) -> Iterator[ProfileFinding]:
    """Yield partitions that no job can use, and missing checks of jobs without a partition."""
    for index, slot in enumerate(samples.queue_slots(site.value)):
        if any(samples.jobs_at(slot)):
            continue
        key = f"partitions.{index}" if site.value.partitions else "launchers"
        message = f"partition {slot.partition.name}: no job fits: {_reason(slot, site)}"
        yield ProfileFinding(severity="error", place=site.near(key), message=message)
    choice = samples.must_name(site.value) or site.value.partition_choice == "fitting"
    if site.value.partitions and not choice and partition_named(site.value, None) is None:
        message = (
            "jobs without a partition are not checked: set partition_choice: job, or a default"
        )
        yield ProfileFinding(severity="warning", place=site.near("partitions"), message=message)


def _reason(slot: samples.QueueSlot, site: SourcedSite) -> str:
    launchers = site.value.launchers
    several = (name for name in launchers.allowed if not samples.is_for_one_node(name))
    job = samples.sample(slot, next(several, launchers.default))
    try:
        make_plan(job, site)
    except HpcTrainError as failure:
        return failure.message.removeprefix(f"{job.origin('')}: ")
    return f"its jobs have {slot.least} nodes, and no launcher here starts more than one"


def _age(site: SourcedSite, today: datetime.date) -> Iterator[ProfileFinding]:
    verified, place = site.value.verified_on, site.near("verified_on")
    if find_batch_system(site.value.scheduler).this_machine:
        return
    if verified is None:
        text = "no verified_on: the date of the last check is unknown"
        yield ProfileFinding(severity="warning", place=site.origin(""), message=text)
        return
    try:
        age = (today - datetime.date.fromisoformat(f"{verified}-01"[:10])).days
    except ValueError:
        text = f"verified_on: {verified} is not a date"
        yield ProfileFinding(severity="error", place=place, message=text)
        return
    if not 0 <= age <= STALE_DAYS:
        when = f"{age} days ago" if age > 0 else "in the future"
        text = f"verified_on: {verified} is {when}"
        yield ProfileFinding(severity="warning", place=place, message=text)


def _sources(site: SourcedSite, path: Path) -> Iterator[ProfileFinding]:
    if not site.value.sources:
        text = "no sources: the values cannot be checked"
        yield ProfileFinding(severity="warning", place=site.origin(""), message=text)
    for stray in unknown_covers(path):
        place, _, text = stray.partition(": ")
        yield ProfileFinding(severity="error", place=place, message=f"covers: {text}")
