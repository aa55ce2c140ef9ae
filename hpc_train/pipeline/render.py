"""A file or a command -> plans and scripts; nothing is written, nothing is started."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec

from hpc_train.errors import PlanError, StrategyError
from hpc_train.lint.setup_lines import check_setup
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.site import SiteProfile
from hpc_train.model.study import Point, RefusedPoint
from hpc_train.model.value import Sourced, Value
from hpc_train.pipeline.detection.default_site import choose_site, load_choice, site_names
from hpc_train.pipeline.prepared import Prepared, PreparedPoint, PreparedSite, prepared_site
from hpc_train.plans.build import make_plan, plan_digest
from hpc_train.registry import find_batch_system, resolve
from hpc_train.scripts.render import render_script
from hpc_train.secret_leaks import check_disclosure
from hpc_train.sites.defaults import fill, read_defaults
from hpc_train.specs.job import check_variables
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
        from hpc_train.pipeline.nested_study import check_nested

        check_nested(request.path, [*sites.values()])
    prepared, refused = prepare_points(points, sites, nested=nested, plain=request.plain)
    if study is not None:
        from hpc_train.plans.cost import check_study

        for site in sites.values():
            plans = [point.plan for point in prepared if point.place is site]
            check_study(study, plans, site.site)
    name = study.spec.name if study else prepared[0].plan.name
    warnings = [*_warnings(points, prepared, refused, [*sites.values()])]
    script = None
    if study is not None and nested:
        from hpc_train.pipeline.nested_study import allocation_of

        script, found = allocation_of(study, prepared, randomised_blocks)
        warnings += found
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
    """Return the points with what their jobs leave out, and notices of it."""
    own, jobs, said = read_defaults(), [], []
    for point in points:
        job, notice = fill(point.job, _place(point, sites).site.value, own)
        if notice:
            check_variables(job)
        jobs.append(msgspec.structs.replace(point, job=job))
        said.append(notice)
    return tuple(jobs), tuple(dict.fromkeys(filter(None, said)))


def _place(point: Point, sites: Mapping[str, PreparedSite]) -> PreparedSite:
    return sites[point.site.name if point.site else ""]


def _sites(request: Request, points: Sequence[Point]) -> dict[str, PreparedSite]:
    """Return the sites by their names in the axis `site`; the only one has an empty name."""
    if any(point.site for point in points):
        # Few studies have several sites.
        from hpc_train.pipeline.sites_of_study import sites_of_study

        return sites_of_study(points, request.site)
    choice = choose_site(request.site)
    if request.starts:
        choice.check()
    return {"": prepared_site(choice, *load_choice(choice))}


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
    for left_out in refused:
        yield f"a point is left out: {left_out.reason}"
    if any(point.job.value.trainer for point in points):
        from hpc_train.plans.trainer_options import schedule_warning

        yield from schedule_warning([point.job for point in points])


def _other_sites(points: Sequence[Point], site: PreparedSite) -> str:
    """Return the sites that have the nodes which this machine lacks."""
    from hpc_train.pipeline.detection.sites_with_nodes import other_sites

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
    check_disclosure(point.job, plan)
    request = find_batch_system(plan.scheduler).request
    words = [re.sub(r"[^A-Za-z0-9.]+", "", str(value))[:24] for value in point.axes.values()]
    return PreparedPoint(
        axes=point.axes,
        job=point.job,
        place=place,
        plan=plan,
        script=render_script(plan, place.folders, plain=plain),
        stem="-".join([*[word for word in words if word][:6], plan_digest(plan)]),
        request=cast(_MakeRequest, resolve(request))(plan, place.site) if request else None,
    )


def schema(kind: Literal["job", "study", "defaults"]) -> bytes:
    """Return the JSON Schema of a job or study file, or of the user's defaults."""
    from hpc_train.specs.json_schema_and_keys import json_schema

    return json_schema(kind)
