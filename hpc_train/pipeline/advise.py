"""A job or study, a site, and earlier results -> the report that advises strategy and size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec
from msgspec.structs import replace

from hpc_train.advice.measured_curve import batch_of
from hpc_train.advice.question import Question
from hpc_train.advice.verdicts import advise
from hpc_train.errors import PlanError, SpecError
from hpc_train.extras import need
from hpc_train.model.advice import Advice
from hpc_train.model.job import SourcedJob
from hpc_train.model.machine_size import MOST_RANKS, MachineSize
from hpc_train.model.program_size import ProgramSize
from hpc_train.model.report import Report
from hpc_train.model.site import SourcedSite
from hpc_train.model.study import SITE_AXIS, Study
from hpc_train.model.value import Value
from hpc_train.pipeline.bench import python_command
from hpc_train.pipeline.detection.default_site import choose_site, load_choice, site_names
from hpc_train.pipeline.earlier_steps import (
    EarlierSteps,
    OwnRuns,
    check_peak,
    own_steps,
    stated_steps,
)
from hpc_train.reports.advice_report import AdviceInput, advice_report
from hpc_train.sites.machine_of_site import machine_of
from hpc_train.specs.deadline_and_budget import budget_gpu_hours, deadline_s
from hpc_train.specs.job import site_name
from hpc_train.specs.points_of_file import points_of
from hpc_train.specs.program_of_job import completed, parse_condition, program_identity, program_of
from hpc_train.subprocesses import Finished, run
from hpc_train.yamlfile import nearest_file

# Without a question, so many nodes at most are looked at.
_NODES = 4


class AdviceOptions(Value, frozen=True, kw_only=True):
    """What is asked: the most GPUs, limits, stated conditions, and earlier results."""

    gpus: int | None = None
    deadline: str | None = None
    budget: str | None = None
    conditions: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    program: str | None = None
    results: Path = Path("runs")


class Subject(NamedTuple):
    """What advice is about: the program of a file, on the machine of a site."""

    study: Study | None
    program: ProgramSize
    machine: MachineSize
    profile: SourcedSite
    nodes: tuple[int, ...]
    job: SourcedJob
    profile_path: Path
    programs: frozenset[tuple[str, ...]]


def subject(path: Path, site: str | None, conditions: Sequence[str] = ()) -> Subject:
    """Return program and machine of a job or study file; `nodes` are those of its points.

    Raises:
        HpcTrainError: the file, the site or a condition is wrong.
    """
    if not path.exists():
        raise SpecError(
            f"{path}: no such file{nearest_file(path)}", "name a job or study file, or a script"
        )
    study, points = points_of(path, names=site_names(site))
    points = [one for one in points if one.axes.get(SITE_AXIS) == site_name(site or "")] or points
    job, resources = points[0].job, [point.job.value.resources for point in points]
    sites = list(dict.fromkeys(point.site.name for point in points if point.site))
    if sites and site is None:
        raise SpecError(
            f"{path}: the study has the sites {', '.join(sites)}; advise answers for one",
            f"hpctrain advise {path} --site {sites[0]}",
        )
    profile_path, profile = load_choice(choose_site(site))
    gpus = any(one.gpus_per_node != 0 for one in resources)
    machine = machine_of(profile, job.value.partition, gpus=gpus)
    each = max((one.tasks_per_node or 1 for one in resources), default=1)
    machine = replace(machine, ranks_per_node=machine.gpus_per_node or each)
    own = dict(study.spec.conditions) if study is not None else {}
    given = dict(map(parse_condition, conditions))
    program = program_of(job, own | given, "--condition" if given else f"{path}: conditions")
    if study is not None:
        program = replace(program, name=study.spec.name)
    nodes = tuple(one.nodes or 1 for one in resources)
    programs = frozenset(program_identity(point.job.value) for point in points)
    return Subject(study, program, machine, profile, nodes, job, profile_path, programs)


def advice_on(path: Path, site: str | None, options: AdviceOptions) -> Report:
    """Return the report of `advice_of`."""
    return advice_of(path, site, options)[1]


def advice_of(path: Path, site: str | None, options: AdviceOptions) -> tuple[Advice, Report]:
    """Return the advice on the program of a job or study file, and its report.

    Without results that are stated, those of runs of the same name on the same site are used.

    Raises:
        HpcTrainError: the file, the site, an option or an earlier result is wrong.
    """
    found = subject(path, site, options.conditions)
    program, machine = found.program, found.machine
    earlier = _earlier(found, machine.site, options)
    program = _with_counts(program, earlier, options.program)
    question = Question(
        program=program,
        machine=machine,
        sizes=sizes(options.gpus, machine, found.nodes),
        measured=earlier.steps,
        deadline_s=deadline_s(options.deadline),
        budget_gpu_hours=budget_gpu_hours(options.budget),
    )
    check_peak(question)
    advice = advise(question)
    about = AdviceInput(
        advice=advice,
        program=program,
        machine=machine,
        measured=earlier.steps,
        notes=earlier.notes,
    )
    return advice, advice_report(about)


def _earlier(found: Subject, site: str, options: AdviceOptions) -> EarlierSteps:
    if options.measured:
        return stated_steps(options.measured, options.results, site)
    return own_steps(found.program.name, options.results, OwnRuns(site, found.programs))


def _with_counts(program: ProgramSize, earlier: EarlierSteps, counted: str | None) -> ProgramSize:
    """Add what earlier runs state of the program, and what its model has."""
    program = completed(program, earlier.conditions, "conditions of the measured runs")
    program = completed(program, batch_of(program, earlier.steps), "the measured runs")
    if counted is None:
        return program
    return completed(program, count_program(counted), f"--program {counted}")


def sizes(gpus: int | None, machine: MachineSize, nodes: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of GPUs to look at: doublings up to a node, then whole nodes, doubled.

    Without GPUs they are ranks. The largest is the one asked for, else that of the jobs, which have
    so many `nodes`, or four nodes with GPUs, within the limits of the partition.

    Raises:
        PlanError: the number asked for is not positive, or more than the partition allows.
    """
    node, limit = machine.ranks_per_node, machine.most_ranks
    usual = max(*nodes, _NODES if machine.gpus_per_node else 1)
    most = gpus if gpus is not None else min(usual * node, limit)
    if not 1 <= most <= MOST_RANKS:
        raise PlanError(f"--gpus {most}: must be 1 to {MOST_RANKS:,}", "--gpus 8")
    if most > limit:
        raise PlanError(
            f"--gpus {most}: {machine.site}, {machine.partition} allows {limit} in one job",
            f"--gpus {limit}",
        )
    inside = [size for size in _doublings(1, most) if size < node]
    return tuple(sorted({*inside, *_doublings(node, most), most}))


def _doublings(first: int, most: int) -> Sequence[int]:
    found = [first] if first <= most else []
    while found and found[-1] * 2 <= most:
        found.append(found[-1] * 2)
    return found


_MODULE = "hpc_train.workload.count_program"
_FORM = re.compile(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,100}", re.ASCII)
_LONGEST_S = 600.0


def count_program(word: str) -> dict[str, str]:
    """Return the counts of the model that `module:function` returns, as conditions.

    The function runs in a process of its own, in the current folder, and allocates nothing.

    Raises:
        SpecError: no such function, or its model cannot be built or run without values.
        MissingExtraError: torch is not installed.
    """
    if not _FORM.fullmatch(word):
        raise SpecError(f"--program {word!r}: not MODULE:FUNCTION", "--program train:make_model")
    need("hpctrain advise --program", "torch", only=("torch",))
    done = run([python_command(), "-m", _MODULE, word], _LONGEST_S)
    found = _last_line(done, word)
    if "error" in found:
        where = f" ({found['line']})" if found.get("line") else ""
        raise SpecError(f"--program {word}: {found['error']}{where}", found["hint"])
    return {key: str(value) for key, value in found.items()}


def _last_line(done: Finished, word: str) -> dict[str, str]:
    lines = done.stdout.strip().splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=dict)
    except (IndexError, msgspec.DecodeError):
        _refuse(done, word)


def _refuse(done: Finished, word: str) -> NoReturn:
    last = next(reversed(done.stderr.strip().splitlines()), "it printed nothing")
    raise SpecError(
        f"--program {word}: its process ended with {done.returncode}: {last}",
        f"{python_command()} -m {_MODULE} {word}",
    ) from None
