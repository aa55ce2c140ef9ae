"""A file or a command -> plans and scripts; nothing is written, nothing is started."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import (
    HpcTrainError,
    PlanError,
    SpecError,
    StrategyError,
    UnknownNameError,
)
from hpc_train.base.files import is_regular, read_regular
from hpc_train.base.registry import BUILT_IN, resolve
from hpc_train.base.shell import read_commands
from hpc_train.base.value import Sourced, Value
from hpc_train.base.yamlfile import list_files, nearest_file
from hpc_train.jobs.job import JobSpec
from hpc_train.jobs.override import Override, option_override, parse_setting
from hpc_train.jobs.points_of_file import points_of
from hpc_train.jobs.read_job import check_variables, readings
from hpc_train.jobs.study import SITE_AXIS, Point, PointSite, RefusedPoint, Study
from hpc_train.plans.build import make_plan, plan_digest
from hpc_train.plans.launchers.base import launcher_called
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import allocate
from hpc_train.runs.run import RunName, Script
from hpc_train.scripts.render import render_allocation, render_script
from hpc_train.scripts.secret_leaks import check_disclosure
from hpc_train.sites.batch_system import BatchSystem, find_batch_system
from hpc_train.sites.default_site import SiteChoice, choose_site, load_choice, site_names
from hpc_train.sites.defaults import fill, read_defaults
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SiteProfile
from hpc_train.sites.search import NEXT, announcement, find_profile, profile_files

T = TypeVar("T")
_MakeRequest = Callable[[LaunchPlan, Sourced[SiteProfile]], dict[str, Any]]


class Request(Value, frozen=True, kw_only=True):
    """A request of the command line: a YAML file, or a program with arguments.

    `plain` scripts do not track their runs, and each is a job; with `starts`, the site is certain.
    """

    path: Path
    arguments: tuple[str, ...] = ()
    site: str | None = None
    overrides: tuple[Override, ...] = ()
    plain: bool = False
    starts: bool = False


class PreparedSite(Value, frozen=True, kw_only=True):
    """A site of a request: the file of its profile, why it was chosen, folders of its templates.

    `notices` say where the profile was found, if the user may not expect it.
    """

    profile: Path
    site: Sourced[SiteProfile]
    choice: SiteChoice | None = None
    folders: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the site."""
        return self.site.value.name

    @property
    def batch(self) -> BatchSystem:
        """What the scheduler of the site gives inside a job."""
        return find_batch_system(self.site.value.scheduler)


class PreparedPoint(Value, frozen=True, kw_only=True):
    """One job, ready to be submitted at a site; `stem` names its runs.

    `request` is sent with the script to a scheduler without directives; a submission completes it.
    """

    axes: dict[str, Any]
    job: Sourced[JobSpec]
    place: PreparedSite
    plan: LaunchPlan
    script: Script
    stem: str
    request: dict[str, Any] | None = None


class Prepared(Value, frozen=True, kw_only=True):
    """A job (one point, no study) or a study, planned and rendered.

    `sites` has several only if they are an axis; `allocation` is the script of a nested study;
    `filled` names what the jobs left out.
    """

    name: str
    sites: tuple[PreparedSite, ...]
    study: Study | None
    points: tuple[PreparedPoint, ...]
    refused: tuple[RefusedPoint, ...] = ()
    allocation: Script | None = None
    filled: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def first(self) -> PreparedSite:
        """The only site, or the first of several."""
        return self.sites[0]

    @property
    def notices(self) -> tuple[str, ...]:
        """Why the site was chosen, unless the user named it, and what was filled in."""
        why = self.first.choice.notice if self.first.choice is not None else ""
        return (why, *self.filled) if why else self.filled

    def points_at(self, site: PreparedSite) -> tuple[PreparedPoint, ...]:
        """Return the points of a site."""
        return tuple(point for point in self.points if point.place is site)


def request_of(
    path: Path,
    arguments: Sequence[str],
    site: str | None,
    options: Mapping[str, str],
    settings: Sequence[str] = (),
) -> Request:
    """Return the request of a command line; `settings` (`--set`) override the `options`.

    Raises:
        SpecError: an invalid value.
    """
    overrides = [option_override(key, text) for key, text in options.items()]
    overrides += map(parse_setting, settings)
    return Request(path=path, arguments=tuple(arguments), site=site, overrides=tuple(overrides))


def prepare(request: Request) -> Prepared:
    """Plan and render a request.

    Raises:
        HpcTrainError: an error in the file or the site, a conflict, or no certain site to start at.
    """
    names = site_names(request.site)
    study, points = points_of(request.path, request.arguments, request.overrides, names)
    sites = _sites(request, points)
    points, filled = _filled(points, sites)
    nested = study is not None and study.spec.placement == "nested" and not request.plain
    if nested:
        _check_nested(request.path, [*sites.values()])
    prepared, refused = prepare_points(points, sites, nested=nested, plain=request.plain)
    name = study.spec.name if study else prepared[0].plan.name
    warnings = [*_warnings(points, prepared, refused, [*sites.values()])]
    script = None
    if study is not None and nested:
        repetitions = [
            [(str(RunName(stem=point.stem, repetition=number)), point.plan) for point in prepared]
            for number in range(1, study.spec.repetitions + 1)
        ]
        place, runs = prepared[0].place, randomised_blocks(repetitions, study.spec.seed)
        allocation = allocate(place.site, runs, name)
        script = render_allocation(allocation, place.folders)
        warnings += allocation.warnings
    return Prepared(
        name=name,
        sites=tuple(sites.values()),
        study=study,
        points=prepared,
        refused=refused,
        allocation=script,
        filled=filled,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _filled(
    points: Sequence[Point], sites: Mapping[str, PreparedSite]
) -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """Return the points with what their jobs leave out, and notices of it and of readings."""
    own, jobs, said = read_defaults(), [], []
    for point in points:
        job, notice = fill(point.job, _place(point, sites).site.value, own)
        if notice:
            check_variables(job)
        jobs.append(msgspec.structs.replace(point, job=job))
        said += [notice, *readings(point.job)]
    return tuple(jobs), tuple(dict.fromkeys(filter(None, said)))


def _place(point: Point, sites: Mapping[str, PreparedSite]) -> PreparedSite:
    return sites[point.site.name if point.site else ""]


def _sites(request: Request, points: Sequence[Point]) -> dict[str, PreparedSite]:
    """Return the sites by their names in the axis `site`; the only one has an empty name."""
    if any(point.site for point in points):
        return _sites_of_study(points, request.site)
    choice = choose_site(request.site)
    if request.starts:
        choice.check()
    return {"": _prepared_site(choice, *load_choice(choice))}


def _warnings(
    points: Sequence[Point],
    prepared: Sequence[PreparedPoint],
    refused: Sequence[RefusedPoint],
    sites: Sequence[PreparedSite],
) -> Iterator[str]:
    for site in sites:
        yield from site.notices
    for point in prepared:
        at = f"{point.place.name}: " if len(sites) > 1 else ""
        yield from (f"{at}{warning}" for warning in point.plan.warnings)
        yield from _directives_ignored(point.job.value.command)
    for left_out in refused:
        yield f"a point is left out: {left_out.reason}"
    if any(point.job.value.trainer for point in points):
        from hpc_train.plans.trainer_options import schedule_warning

        yield from schedule_warning([point.job for point in points])


def _other_sites(points: Sequence[Point], site: PreparedSite) -> str:
    """Return the sites that have the nodes which this machine lacks."""
    from hpc_train.sites.default_site import other_sites

    nodes = (point.job.value.resources.nodes for point in points)
    return other_sites(nodes) if site.batch.this_machine else ""


def randomised_blocks(blocks: Sequence[Sequence[T]], seed: int) -> list[T]:
    """Return the items of one block after the other, in a random order within each block.

    With one block for each repetition, all points meet a drift of the machine alike (R. A. Fisher,
    The Design of Experiments, 1935: randomised complete blocks). The seed reproduces the order.
    """
    chance = random.Random(seed)  # noqa: S311 - an order, no secret
    order = [list(block) for block in blocks]
    for block in order:
        chance.shuffle(block)
    return [item for block in order for item in block]


def prepare_points(
    points: Sequence[Point], sites: Mapping[str, PreparedSite], **how: bool
) -> tuple[tuple[PreparedPoint, ...], tuple[RefusedPoint, ...]]:
    """Plan and render jobs, each at the site that it names; the only site has an empty name.

    Returns them, and the points that cannot run.
    """
    try:
        if len(points) == 1:
            return (_prepare_point(points[0], sites, **how),), ()
        return _split_refused(points, lambda point: _prepare_point(point, sites, **how))
    except PlanError as failure:
        if len(sites) == 1:
            failure.hint = failure.hint or _other_sites(points, next(iter(sites.values())))
        raise


def _split_refused(
    points: Sequence[Point], prepare: Callable[[Point], PreparedPoint]
) -> tuple[tuple[PreparedPoint, ...], tuple[RefusedPoint, ...]]:
    """Return the points, and those whose strategy cannot run there; not all may be refused."""
    done, refused, failures = [], [], []
    for point in points:
        try:
            done.append(prepare(point))
        except StrategyError as failure:
            failures.append(failure)
            refused.append(RefusedPoint(axes=point.axes, reason=failure.reason))
    if failures and not done:
        raise failures[0]
    return tuple(done), tuple(refused)


def _prepare_point(
    point: Point, sites: Mapping[str, PreparedSite], *, nested: bool, plain: bool
) -> PreparedPoint:
    place = _place(point, sites)
    plan = make_plan(point.job, place.site, nested=nested, plain=plain)
    check_setup(plan)
    _check_command(point.job, plan)
    check_disclosure(point.job, plan)
    request = find_batch_system(plan.scheduler).request
    words = [re.sub(r"[^A-Za-z0-9.]+", "", str(value))[:24] for value in point.axes.values()]
    return PreparedPoint(
        axes=point.axes,
        job=point.job,
        place=place,
        plan=plan,
        script=render_script(plan, place.folders),
        stem="-".join([*[word for word in words if word][:6], plan_digest(plan)]),
        request=cast(_MakeRequest, resolve(request))(plan, place.site) if request else None,
    )


def _directives_ignored(command: Sequence[str]) -> Iterator[str]:
    """Yield that the directives of a job script which each rank runs are comments."""
    for word in command[:2]:
        path = Path(word)
        if path.suffix in (".sh", ".sbatch", ".slurm", ".pbs") and is_regular(path):
            if mark := re.search(rb"^#(SBATCH|PBS) ", read_regular(path), re.MULTILINE):
                yield (
                    f"{word}: its lines #{mark[1].decode()} have no effect, as each rank runs it "
                    "as a program: give nodes, GPUs and time as options (--nodes 2), or name the "
                    "program that it starts"
                )


def _check_command(job: Sourced[JobSpec], plan: LaunchPlan) -> None:
    """Refuse a command that starts ranks itself, where each rank of the job would start it.

    Raises:
        PlanError: with the launcher of the job that means the same.
    """
    words = [*takewhile(lambda word: not word.endswith(".py"), job.value.command)]
    if words[:1] and words[0] in ("sbatch", "qsub"):
        raise PlanError(
            f"{job.near('command')}: command: each rank would submit a job by {words[0]}",
            "name the program that the job script starts; hpctrain lint checks a job script",
        )
    # A usual command needs no module of another launcher.
    modules = (word for word in words if word.endswith((".run", ".launch")))
    named = (word for word in words if word in BUILT_IN["launchers"])
    own = next(filter(None, map(launcher_called, (*named, *modules))), "")
    own = words[0] if words[:1] and words[0] in BUILT_IN["launchers"] else own
    if own and (own == plan.launcher or plan.topology.tasks_per_node > 1):
        raise PlanError(
            f"{job.near('command')}: command: {plan.launcher} would start {own} as each rank",
            f"launcher: {own}, resources: {{tasks_per_node: N}} and command: [python, SCRIPT]; "
            "launcher: single starts one process as it is",
        )


def _prepared_site(choice: SiteChoice, profile: Path, site: Sourced[SiteProfile]) -> PreparedSite:
    """Return a chosen site, with the folders of its templates."""
    return PreparedSite(
        profile=profile.absolute(),
        site=site,
        choice=choice,
        folders=template_path(profile),
        # By the path as it was found: an absolute one may be of any layer.
        notices=announcement(choice.name, profile),
    )


def _sites_of_study(points: Sequence[Point], option: str | None) -> dict[str, PreparedSite]:
    """Return name in the axis -> site, in the order of the axis; `option` is that of --site.

    Raises:
        SpecError: --site is given, too, or there is no such file. UnknownNameError: no profile of
        that name. HpcTrainError: a profile is wrong.
    """
    named = {one.site.name: one.site for one in points if one.site is not None}
    first = next(iter(named.values()))
    if option:
        raise SpecError(
            f"--site {option}: {first.origin}: the axis site names the sites of this study",
            f"change the axis: --set 'axes.{SITE_AXIS}=[{option}]'",
        )
    return {name: _loaded(site) for name, site in named.items()}


def _loaded(site: PointSite) -> PreparedSite:
    try:
        path = find_profile(site.name)
        if path.is_dir():
            raise SpecError(f"{path}: it is a folder, not the file of a profile", NEXT)
        if not path.exists():
            raise SpecError(f"{path}: no such file{nearest_file(path)}", list_files(path))
        profile = load_site(path)
    except UnknownNameError as failure:
        if failure.name != site.name:
            raise
        known = [path.stem for path in profile_files()]
        raise UnknownNameError("site", site.name, known, site.origin, hint=NEXT) from None
    except HpcTrainError as failure:
        failure.message = f"{site.origin}: axes.site: {failure.message}"
        raise
    return _prepared_site(SiteChoice(name=site.name), path, profile)


def _check_nested(path: Path, sites: Sequence[PreparedSite]) -> None:
    """Refuse sites that cannot give one allocation to all runs.

    Raises:
        PlanError: several sites, or one that is this machine.
    """
    only = "remove placement: independent is the default"
    start = f"{path}: placement nested needs one allocation"
    if len(sites) > 1:
        raise PlanError(f"{start}, but the study has {len(sites)} sites", only)
    if sites[0].batch.this_machine:
        raise PlanError(f"{start} of several nodes, which {sites[0].name} cannot give", only)


def schema(kind: Literal["job", "study", "defaults"]) -> bytes:
    """Return the JSON Schema of a job or study file, or of the user's defaults."""
    from hpc_train.sites.json_schema_and_keys import json_schema

    return json_schema(kind)


def check_setup(plan: LaunchPlan) -> None:
    """Refuse setup lines with an open quote, parenthesis or here-document.

    The lines of a job and those of a profile are separate texts; one of them may span lines.

    Raises:
        PlanError: with the line of the job file or of the profile.
    """
    lines = [
        (str(setting.value), setting.origin)
        for key, setting in plan.settings.items()
        if key.startswith("setup.")
    ]
    files: dict[str, list[tuple[str, str]]] = {}
    for text, origin in lines:
        files.setdefault(origin.rpartition(":")[0] or origin, []).append((text, origin))
    for texts in files.values():
        unclosed = read_commands("\n".join(text for text, _ in texts)).unclosed
        before = 0
        for text, origin in texts if unclosed else ():
            before += text.count("\n") + 1
            if unclosed[0].line <= before:
                opening = unclosed[0].opening
                raise PlanError(
                    f"{origin}: setup: the {opening} is never closed: {text[:80]}",
                    f"close the {opening}; bash would read the rest of the script as text",
                )
