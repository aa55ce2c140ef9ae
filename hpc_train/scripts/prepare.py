"""A file or a command -> plans and scripts; nothing is written, nothing is started."""

import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from hpc_train.base.data_folders import template_path
from hpc_train.base.errors import PlanError, SpecError, StrategyError
from hpc_train.base.files import is_regular, read_regular
from hpc_train.base.registry import BUILT_IN, resolve
from hpc_train.base.shell import read_commands
from hpc_train.base.values import Sourced, Value, encode_unit
from hpc_train.base.variable_names_and_secrets import looks_secret
from hpc_train.jobs.job import JobSpec, SourcedJob
from hpc_train.jobs.override import Override, option_override, parse_setting
from hpc_train.jobs.read_job import check_variables, points_of, readings
from hpc_train.jobs.study import Point, RefusedPoint, Study
from hpc_train.plans.build import make_plan, plan_digest
from hpc_train.plans.launchers.base import launcher_called
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import allocate
from hpc_train.runs.run import RunName, Script
from hpc_train.scripts.render import render_allocation, render_script
from hpc_train.sites.batch_system import BatchSystem, find_batch_system
from hpc_train.sites.detection import (
    ONE_NODE,
    SEVERAL_NODES,
    SiteChoice,
    choose_site,
    fill,
    load_choice,
    read_defaults,
)
from hpc_train.sites.profile import SiteProfile
from hpc_train.sites.search import announcement

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
    """A job (one point, no study) or a study at a site, planned and rendered.

    `allocation` is the script of a nested study; `filled` names what the jobs left out.
    """

    name: str
    site: PreparedSite
    study: Study | None
    points: tuple[PreparedPoint, ...]
    refused: tuple[RefusedPoint, ...] = ()
    allocation: Script | None = None
    filled: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def notices(self) -> tuple[str, ...]:
        """Why the site was chosen, unless the user named it, and what was filled in."""
        why = self.site.choice.notice if self.site.choice is not None else ""
        return (why, *self.filled) if why else self.filled


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
    study, points = points_of(request.path, request.arguments, request.overrides)
    choice = choose_site(request.site)
    if request.starts:
        choice.check()
    profile, sourced = load_choice(choice)
    site = PreparedSite(
        profile=profile.absolute(),
        site=sourced,
        choice=choice,
        folders=template_path(profile),
        # By the path as it was found: an absolute one may be of any layer.
        notices=announcement(choice.name, profile),
    )
    points, filled = _filled(points, sourced.value)
    nested = study is not None and study.spec.placement == "nested" and not request.plain
    if nested and not site.batch.allocations:
        raise PlanError(
            f"{request.path}: placement nested needs one allocation for all runs, which "
            f"{site.name} does not have",
            "leave placement out: independent is the default",
        )
    prepared, refused = prepare_points(points, site, nested=nested, plain=request.plain)
    warnings = [*site.notices, *_warnings(prepared, refused)]
    name = study.spec.name if study else prepared[0].plan.name
    script = None
    if study is not None and nested:
        repetitions = [
            [(str(RunName(stem=point.stem, repetition=number)), point.plan) for point in prepared]
            for number in range(1, study.spec.repetitions + 1)
        ]
        allocation = allocate(sourced, randomised_blocks(repetitions, study.spec.seed), name)
        script = render_allocation(allocation, site.folders)
        warnings += allocation.warnings
    return Prepared(
        name=name,
        site=site,
        study=study,
        points=prepared,
        refused=refused,
        allocation=script,
        filled=filled,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _filled(
    points: Sequence[Point], site: SiteProfile
) -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """Return the points with what their jobs leave out, and notices of it and of readings."""
    own, jobs, said = read_defaults(), [], []
    for point in points:
        job, notice = fill(point.job, site, own)
        if notice:
            check_variables(job)
        jobs.append(msgspec.structs.replace(point, job=job))
        said += [notice, *readings(point.job)]
    return tuple(jobs), tuple(dict.fromkeys(filter(None, said)))


def _warnings(prepared: Sequence[PreparedPoint], refused: Sequence[RefusedPoint]) -> Iterator[str]:
    for point in prepared:
        yield from point.plan.warnings
        yield from _directives_ignored(point.job.value.command)
    for left_out in refused:
        yield f"a point is left out: {left_out.reason}"


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
    points: Sequence[Point], site: PreparedSite, *, nested: bool, plain: bool
) -> tuple[tuple[PreparedPoint, ...], tuple[RefusedPoint, ...]]:
    """Plan and render jobs at a site.

    Returns them, and the points of a study whose strategy cannot run there.

    Raises:
        HpcTrainError: a job is refused; all strategies of a study are.
    """
    done, refused = [], []
    for point in points:
        try:
            done.append(_prepare_point(point, site, nested=nested, plain=plain))
        except StrategyError as failure:
            refused.append(RefusedPoint(axes=point.axes, reason=failure.reason))
            if len(refused) == len(points):
                raise
        except PlanError as failure:
            if site.batch.this_machine and not failure.hint:
                several = any(one.job.value.resources.nodes > 1 for one in points)
                failure.hint = SEVERAL_NODES if several else ONE_NODE
            raise
    return tuple(done), tuple(refused)


def _prepare_point(point: Point, site: PreparedSite, *, nested: bool, plain: bool) -> PreparedPoint:
    plan = make_plan(point.job, site.site, nested=nested, plain=plain)
    check_setup(plan)
    _check_command(point.job, plan)
    _check_disclosure(point.job, plan)
    request = site.batch.request
    words = [re.sub(r"[^A-Za-z0-9.]+", "", str(value))[:24] for value in point.axes.values()]
    return PreparedPoint(
        axes=point.axes,
        job=point.job,
        plan=plan,
        script=render_script(plan, site.folders),
        stem="-".join([*[word for word in words if word][:6], plan_digest(plan)]),
        request=cast(_MakeRequest, resolve(request))(plan, site.site) if request else None,
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


def check_setup(plan: LaunchPlan) -> None:
    """Refuse setup lines with an open quote, parenthesis or here-document.

    The lines of a job and those of a profile are separate texts; one of them may span lines.

    Raises:
        PlanError: with the line of the job file or of the profile.
    """
    files: dict[str, list[tuple[str, str]]] = {}
    for key, setting in plan.settings.items():
        if key.startswith("setup."):
            place = setting.origin
            # Each line of a text with the place of the text.
            lines = [(line, place) for line in str(setting.value).split("\n")]
            files.setdefault(place.rpartition(":")[0] or place, []).extend(lines)
    for lines in files.values():
        for unclosed in read_commands("\n".join(line for line, _ in lines)).unclosed:
            line, origin = lines[unclosed.line - 1]
            raise PlanError(
                f"{origin}: setup: the {unclosed.opening} is never closed: {line[:80]}",
                f"close the {unclosed.opening}; bash would read the rest of the script as text",
            )


# Shorter values are words like `true` that occur in many scripts.
_SHORTEST = 8


def _check_disclosure(job: SourcedJob, plan: LaunchPlan) -> None:
    """Search a plan for the values of this shell's secrets.

    A shell expands `--token $HF_TOKEN` before hpctrain sees it.

    Raises:
        SpecError: the plan contains one; the message does not.
    """
    named = {secret.name for secret in plan.secrets}
    hidden = {
        name: value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and (name in named or looks_secret(name, value))
    }
    if not hidden:
        return
    text = msgspec.json.encode(plan, enc_hook=encode_unit)
    for name, value in hidden.items():
        # Without the quotes around it.
        if msgspec.json.encode(value)[1:-1] in text:
            raise SpecError(
                f"{job.origin('command')}: the script would contain the value of {name}, and "
                "scripts are kept and shared",
                f"write `secrets: {{{name}: env}}` and let the program read ${name}",
            )
