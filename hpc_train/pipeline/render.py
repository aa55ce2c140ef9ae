"""A file or a command -> plans and scripts; nothing is written, nothing is started."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from hpc_train.data_folders import template_path
from hpc_train.errors import PlanError
from hpc_train.lint.setup_lines import check_setup
from hpc_train.model.batch_system import BatchSystem
from hpc_train.model.job import JobSpec
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunName
from hpc_train.model.site import SiteProfile
from hpc_train.model.study import Point, RefusedPoint, Study
from hpc_train.model.submission import Allocation, Script
from hpc_train.model.value import Sourced, Value
from hpc_train.pipeline.detection.default_site import SiteChoice, choose_site, load_choice
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan_digest import plan_digest
from hpc_train.registry import find_batch_system, resolve
from hpc_train.scripts.render import render_allocation, render_script
from hpc_train.secret_leaks import check_disclosure
from hpc_train.sites.search import announcement
from hpc_train.specs.override import Override, option_override, parse_setting
from hpc_train.specs.points_of_file import points_of

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


class PreparedPoint(Value, frozen=True, kw_only=True):
    """One job, ready to be submitted; `stem` names its runs.

    `request` is sent with the script to a scheduler without directives; a submission completes it.
    """

    axes: dict[str, Any]
    job: Sourced[JobSpec]
    plan: LaunchPlan
    script: Script
    stem: str
    request: dict[str, Any] | None = None


class Prepared(Value, frozen=True, kw_only=True):
    """A job (one point, no study) or a study, planned and rendered for a site.

    `profile` is the file of the site, `choice` why it, `allocation` the script of a nested study.
    """

    name: str
    profile: Path
    site: Sourced[SiteProfile]
    study: Study | None
    points: tuple[PreparedPoint, ...]
    refused: tuple[RefusedPoint, ...] = ()
    allocation: Script | None = None
    warnings: tuple[str, ...] = ()
    choice: SiteChoice | None = None

    @property
    def batch(self) -> BatchSystem:
        """What the scheduler of the site gives inside a job."""
        return find_batch_system(self.site.value.scheduler)


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
    choice = choose_site(request.site)
    if request.starts:
        choice.check()
    profile, site = load_choice(choice)
    study, points = points_of(request.path, request.arguments, request.overrides)
    nested = _is_nested(request, study, site)
    folders = template_path(profile)
    prepared, refused = prepare_points(points, site, folders, nested=nested, plain=request.plain)
    if study is not None:
        from hpc_train.plans.cost import check_study

        check_study(study, [point.plan for point in prepared], site)
    name = study.spec.name if study else prepared[0].plan.name
    warnings = [*announcement(choice.name, profile), *_warnings(points, prepared, refused)]
    script = None
    if study is not None and nested:
        allocation = _allocation(study, prepared, site)
        script = render_allocation(allocation, folders)
        warnings += allocation.warnings
    return Prepared(
        name=name,
        profile=profile.absolute(),
        site=site,
        study=study,
        points=prepared,
        refused=refused,
        allocation=script,
        warnings=tuple(dict.fromkeys(warnings)),
        choice=choice,
    )


def _warnings(
    points: Sequence[Point], prepared: Sequence[PreparedPoint], refused: Sequence[RefusedPoint]
) -> Iterator[str]:
    for point in prepared:
        yield from point.plan.warnings
    for left_out in refused:
        yield f"a point is left out: {left_out.reason}"
    if any(point.job.value.trainer for point in points):
        from hpc_train.plans.trainer_options import schedule_warning

        yield from schedule_warning([point.job for point in points])


def _other_sites(points: Sequence[Point], site: SiteProfile) -> str:
    """Return the sites that have the nodes which this machine lacks."""
    from hpc_train.pipeline.detection.sites_with_nodes import other_sites

    nodes = (point.job.value.resources.nodes for point in points)
    return other_sites(nodes) if find_batch_system(site.scheduler).this_machine else ""


def _is_nested(request: Request, study: Study | None, site: Sourced[SiteProfile]) -> bool:
    nested = study is not None and study.spec.placement == "nested" and not request.plain
    if nested and find_batch_system(site.value.scheduler).this_machine:
        raise PlanError(
            f"{request.path}: placement nested needs one allocation of several nodes, "
            f"which {site.value.name} cannot give",
            "remove placement: independent is the default",
        )
    return nested


def _allocation(
    study: Study, points: Sequence[PreparedPoint], site: Sourced[SiteProfile]
) -> Allocation:
    """Return the script of the allocation of a nested study without runs."""
    from hpc_train.plans.shared_allocation import allocate

    repetitions = [
        [(str(RunName(stem=point.stem, repetition=number)), point.plan) for point in points]
        for number in range(1, study.spec.repetitions + 1)
    ]
    order = randomised_blocks(repetitions, study.spec.seed)
    return allocate(site, order, study.spec.name)


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
    points: Sequence[Point], site: Sourced[SiteProfile], folders: Sequence[Path], **how: bool
) -> tuple[tuple[PreparedPoint, ...], tuple[RefusedPoint, ...]]:
    """Plan and render the jobs of a site; return them, and the points that cannot run."""
    try:
        if len(points) == 1:
            return (_prepare_point(points[0], site, folders, **how),), ()
        from hpc_train.plans.refused_points import apart

        return apart(points, lambda point: _prepare_point(point, site, folders, **how))
    except PlanError as failure:
        failure.hint = failure.hint or _other_sites(points, site.value)
        raise


def _prepare_point(
    point: Point, site: Sourced[SiteProfile], folders: Sequence[Path], *, nested: bool, plain: bool
) -> PreparedPoint:
    plan = make_plan(point.job, site, nested=nested, plain=plain)
    check_setup(plan)
    check_disclosure(point.job, plan)
    request = find_batch_system(plan.scheduler).request
    words = [re.sub(r"[^A-Za-z0-9.]+", "", str(value))[:24] for value in point.axes.values()]
    return PreparedPoint(
        axes=point.axes,
        job=point.job,
        plan=plan,
        script=render_script(plan, folders, plain=plain),
        stem="-".join([*[word for word in words if word][:6], plan_digest(plan)]),
        request=cast(_MakeRequest, resolve(request))(plan, site) if request else None,
    )


def schema(kind: Literal["job", "study"]) -> bytes:
    """Return the JSON Schema of a job or study file."""
    from hpc_train.specs.json_schema_and_keys import json_schema

    return json_schema(kind)


def place_problem(prepared: Prepared) -> str:
    """Return why jobs cannot be submitted from this folder, or an empty string."""
    if prepared.site.value.submit_from is None:
        return ""
    from hpc_train.sites.submit_folder import wrong_place

    return wrong_place(prepared.site)
