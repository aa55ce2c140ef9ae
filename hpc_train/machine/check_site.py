"""Profiles: what they state and may state, and their check without a scheduler."""

import datetime
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hpc_train.base.data_folders import schema_file, template_path
from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.base.values import Finding, Value, encode_unit
from hpc_train.base.yamlfile import join
from hpc_train.jobs.job import SourcedJob
from hpc_train.lint.lint_file import make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.plans import sample_jobs as samples
from hpc_train.plans.build import make_plan
from hpc_train.plans.queue_limits import partition_named
from hpc_train.scripts.render import render_script
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import Machine, load_site
from hpc_train.sites.merge import source_of, unknown_covers
from hpc_train.sites.profile import SiteProfile, Source, SourcedSite
from hpc_train.sites.search import find_profile, label_of, layer_at, layer_of, profile_files

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


class ProfileSummary(Value, frozen=True, kw_only=True):
    """One profile in `site list`; `gpus` as `4 a100`, unknown values are empty."""

    name: str
    scheduler: str
    gpus: tuple[str, ...]
    fabric: str
    launchers: tuple[str, ...]
    verified_on: str
    confidence: str
    description: str
    file: str
    layer: str


def list_sites() -> Iterator[ProfileSummary | HpcTrainError]:
    """Yield each profile on the search path, or its error."""
    for path in profile_files():
        try:
            yield _listed(load_site(path, Machine(cpus=1, gpus=0)).value, path)
        except SiteProfileError as failure:
            yield failure


def _listed(profile: SiteProfile, path: Path) -> ProfileSummary:
    nodes = [
        f"{one.gpus_per_node} {one.gpu_type or one.gpu_model or 'GPUs'}"
        for one in profile.partitions
        if one.gpus_per_node and not find_batch_system(profile.scheduler).this_machine
    ]
    network = profile.network
    # Else that of its weakest source.
    stated = {source.confidence for source in profile.sources}
    weakest = next((word for word in ("low", "medium", "high") if word in stated), "")
    return ProfileSummary(
        name=profile.name,
        scheduler=profile.scheduler,
        gpus=tuple(dict.fromkeys(nodes)),
        fabric=(network.fabric if network else None) or "",
        launchers=profile.launchers.allowed,
        verified_on=profile.verified_on or "",
        confidence=profile.confidence or weakest,
        description=profile.description,
        file=label_of(path),
        layer=layer_of(path),
    )


# Facts that improve job scripts; not every site has the other keys.
_WANTED = ("contact", "url", "verified_on", "slurm", "partitions", "network", "internet", "storage")
_WANTED_OF_PARTITION = ("max_time", "max_nodes", "gpus_per_node", "cpus_per_node")


class ProfileValue(Value, frozen=True, kw_only=True):
    """One value: key, value, origin, layer of the file, and source.

    `source` is the number of the source, counted from 1; 0 means none.
    """

    key: str
    value: Any
    origin: str
    layer: str
    source: int


class ShownProfile(NamedTuple):
    """The values of a profile, its sources, and the keys that it does not state."""

    values: tuple[ProfileValue, ...]
    sources: tuple[Source, ...]
    unknown: tuple[str, ...]


def show_profile(name: str, *, defaults: bool = False) -> ShownProfile:
    """Return the values in the order of the schema, lists by names; defaults only if asked for.

    Raises:
        HpcTrainError: there is no such profile, or it is invalid.
    """
    site = load_site(name)
    profile = site.value
    plain = msgspec.to_builtins(profile, enc_hook=encode_unit)
    rows = []
    for key, label, value in _leaves(plain, "", ""):
        stated, empty = key in site.origins, value in (None, [], (), {}, "")
        if not key.startswith("sources.") and (stated or (defaults and not empty)):
            origin, source = site.origin(key), source_of(site, key) if stated else None
            number = profile.sources.index(source) + 1 if source else 0
            layer = layer_at(origin)
            rows.append(
                ProfileValue(key=label, value=value, origin=origin, layer=layer, source=number)
            )
    missing = [key for key in _WANTED if getattr(profile, key) in (None, (), {})]
    for partition in profile.partitions:
        missing += [
            f"partitions.{partition.name}.{key}"
            for key in _WANTED_OF_PARTITION
            if getattr(partition, key) is None
        ]
    return ShownProfile(tuple(rows), profile.sources, tuple(missing))


def _leaves(value: Any, key: str, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the values of a tree: their keys by position, their keys by name, themselves."""
    if isinstance(value, dict) and value:
        items = [(one, one, inner) for one, inner in value.items()]
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        items = [(str(i), str(one.get("name", i)), one) for i, one in enumerate(value)]
    else:
        yield key, name, value
        return
    for part, label, inner in items:
        yield from _leaves(inner, join(key, part), join(name, label))


# The table of the keys of a profile, from its JSON Schema.
_WORDS = {"integer": "whole number", "string": "text", "boolean": "true, false"}
Schema = dict[str, Any]


def key_rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield key, allowed values, default and meaning; lists are `a[]`, free names `<name>`."""
    kinds = msgspec.json.decode(schema_file("site").read_bytes())["$defs"]
    yield from _rows(kinds, SiteProfile.__name__, "")


def _rows(kinds: Schema, name: str, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for key, field in kinds[name]["properties"].items():
        plain = _without_null(field)[0]
        item, ending = plain, ""
        if "items" in plain:
            item, ending = plain["items"], "[]"
        elif "additionalProperties" in plain:
            item, ending = plain["additionalProperties"], ".<name>"
        inner = item.get("$ref", "").rpartition("/")[2]
        whole = f"{prefix}{key}{ending if inner else ''}"
        described = (field, plain, kinds.get(inner, {}))
        meaning = next((one["description"] for one in described if "description" in one), "")
        default = field.get("default")
        if default in (None, [], "") or isinstance(default, dict):
            shown = "required" if key in kinds[name]["x-required"] else ""
        else:
            shown = msgspec.json.encode(default).decode().strip('"')
        yield whole, _allowed(field), shown, meaning.partition("\n")[0]
        if inner:
            yield from _rows(kinds, inner, f"{whole}.")


def _without_null(kind: Schema) -> list[Schema]:
    return [one for one in kind.get("anyOf", [kind]) if one.get("type") != "null"]


def _allowed(kind: Schema) -> str:
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(map(_allowed, _without_null(kind))))
    words = kind.get("enum") or ([*kind["examples"], "…"] if "examples" in kind else [])
    if words:
        return ", ".join(map(str, words))
    if "items" in kind:
        return f"list: {_allowed(kind['items'])}"
    if "additionalProperties" in kind:
        return f"text: {_allowed(kind['additionalProperties'])}"
    if "minimum" in kind:
        least, most = kind["minimum"], kind.get("maximum")
        return f"{least} or more" if most is None else f"{least} to {most}"
    word: str = kind.get("type", "mapping")
    return _WORDS.get(word, word)
