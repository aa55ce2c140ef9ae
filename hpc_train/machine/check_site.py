"""Check of a profile without a scheduler: loading, dates of sources, sample jobs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from pathlib import Path

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import HpcTrainError
from hpc_train.base.finding import Finding
from hpc_train.base.value import Sourced, Value
from hpc_train.jobs.job import JobSpec, SourcedJob
from hpc_train.lint.lint_file import Linter, LintOptions, make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.plans.build import make_plan
from hpc_train.plans.queue_limits import partition_named
from hpc_train.plans.sample_jobs import (
    QueueSlot,
    is_for_one_node,
    jobs_at,
    must_name,
    nameless_job,
    queue_slots,
    sample,
    sample_jobs,
)
from hpc_train.scripts.render import render_script
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.cited_sources import unknown_covers
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile, SourcedSite
from hpc_train.sites.search import find_profile

STALE_DAYS = 365
# Scripts for more nodes differ from that for two only in the number.
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
    jobs = list(sample_jobs(site.value))
    nameless = nameless_job(site.value)
    jobs += [nameless] if nameless else []
    findings = [
        *_age(site, today),
        *_sources(site, path),
        *_empty_rules(site),
        *_queues(site),
        *_jobs(jobs, site, path),
    ]
    return ProfileCheck(findings=tuple(dict.fromkeys(findings)), jobs=len(jobs))


def _jobs(jobs: Iterable[SourcedJob], site: SourcedSite, path: Path) -> Iterator[ProfileFinding]:
    linter = make_linter(LintOptions(site=str(path)))
    folders = template_path(path)
    for job in jobs:
        try:
            text = render_script(make_plan(job, site), folders).text
        except HpcTrainError as failure:
            yield _error(job.origin(""), failure)
            continue
        if _is_linted(job, site.value):
            yield from _lint(text, linter, job.origin(""))


def _is_linted(job: Sourced[JobSpec], profile: SiteProfile) -> bool:
    """Whether a sample script is linted: not every combination of launcher and partition."""
    first = profile.partitions[0].name if profile.partitions else None
    usual = job.value.launcher == profile.launchers.default
    return job.value.resources.nodes <= _LINTED_NODES and (
        usual or job.value.partition in (first, None)
    )


def _error(place: str, failure: HpcTrainError) -> ProfileFinding:
    text = _without(place, failure)
    message = f"{text}; {failure.hint}" if failure.hint else text
    return ProfileFinding(severity="error", place=place, message=message)


def _without(place: str, failure: HpcTrainError) -> str:
    """Remove the place of a sample job from the beginning of a message."""
    return failure.message.removeprefix(f"{place}: ")


def _queues(site: SourcedSite) -> Iterator[ProfileFinding]:
    """Yield partitions that no job can use, and missing checks of jobs without a partition."""
    for index, slot in enumerate(queue_slots(site.value)):
        if any(jobs_at(slot)):
            continue
        key = f"partitions.{index}" if site.value.partitions else "launchers"
        message = f"partition {slot.partition.name}: no job fits: {_reason(slot, site)}"
        yield ProfileFinding(severity="error", place=site.near(key), message=message)
    choice = must_name(site.value) or site.value.partition_choice == "fitting"
    if site.value.partitions and not choice and partition_named(site.value, None) is None:
        message = (
            "jobs without a partition are not checked: set partition_choice: job, or a default"
        )
        yield ProfileFinding(severity="warning", place=site.near("partitions"), message=message)


def _reason(slot: QueueSlot, site: SourcedSite) -> str:
    launchers = site.value.launchers
    several = (name for name in launchers.allowed if not is_for_one_node(name))
    job = sample(slot, next(several, launchers.default))
    try:
        make_plan(job, site)
    except HpcTrainError as failure:
        return _without(job.origin(""), failure)
    return f"its jobs have {slot.least} nodes, and no launcher here starts more than one"


def _lint(text: str, linter: Linter, place: str) -> Iterator[ProfileFinding]:
    for finding in lint_script(text, linter.context, linter.rules):
        if finding.severity != "info":
            message = f"{finding.id}: {finding.message}"
            yield ProfileFinding(severity=finding.severity, place=place, message=message)


def _age(site: SourcedSite, today: datetime.date) -> Iterator[ProfileFinding]:
    verified = site.value.verified_on
    if find_batch_system(site.value.scheduler).this_machine:
        return
    if verified is None:
        yield ProfileFinding(
            severity="warning",
            place=site.origin(""),
            message="no verified_on: the date of the last check is unknown",
        )
        return
    year, month, day = (int(part) for part in f"{verified}-01-01".split("-")[:3])
    try:
        age = today - datetime.date(year, month, day)
    except ValueError:
        text = f"verified_on: {verified} is not a date"
        yield ProfileFinding(severity="error", place=site.near("verified_on"), message=text)
        return
    if age.days > STALE_DAYS or age.days < 0:
        when = f"{age.days} days ago" if age.days > 0 else "in the future"
        text = f"verified_on: {verified} is {when}"
        yield ProfileFinding(severity="warning", place=site.near("verified_on"), message=text)


def _empty_rules(site: SourcedSite) -> Iterator[ProfileFinding]:
    """Warn of rules without the value that they need."""
    profile = site.value
    for index, partition in enumerate(profile.partitions):
        needs = {
            "gpu_type": profile.gpu_request_typed,
            "mem_per_gpu": profile.mem_request == "per-gpu",
            "cpus_per_gpu": partition.cpu_rule != "share",
        }
        for key, needed in needs.items():
            if needed and partition.gpus_per_node and getattr(partition, key) is None:
                rule = {"gpu_type": "gpu_request_typed", "mem_per_gpu": "mem_request: per-gpu"}
                text = f"{rule.get(key, 'cpu_rule')} has no effect here without {key}"
                place = site.near(f"partitions.{index}")
                yield ProfileFinding(severity="warning", place=place, message=text)


def _sources(site: SourcedSite, path: Path) -> Iterator[ProfileFinding]:
    if not site.value.sources:
        text = "no sources: the values cannot be checked"
        yield ProfileFinding(severity="warning", place=site.origin(""), message=text)
    for stray in unknown_covers(path):
        place, _, text = stray.partition(": ")
        yield ProfileFinding(severity="error", place=place, message=f"covers: {text}")
