"""Earlier results of a program -> the measured steps that advice starts from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from hpc_train.advice.question import Question
from hpc_train.advice.step_time import model_flops_utilisation
from hpc_train.errors import HpcTrainError, PlanError
from hpc_train.extras import need
from hpc_train.model.advice import MeasuredStep
from hpc_train.model.operations import FLOPS, PARAMETERS
from hpc_train.model.quantity_text import TIME, quantity_text, range_text
from hpc_train.model.run import Run
from hpc_train.model.value import Value
from hpc_train.model.value_range import Range
from hpc_train.specs.program_of_job import program_identity

if TYPE_CHECKING:
    import pandas as pd

# The name of the study that `advise --calibrate` submits.
CALIBRATION = "{}-calibration"
# Steps of one size that differ by more are not of one program, or of one machine.
_CONTRADICTS = 1.2
# The peaks of data sheets, and counts of operations, are rounded.
_ROUNDED = 1.05


class EarlierSteps(Value, frozen=True, kw_only=True):
    """The steps, the conditions of their runs, and why results that are there were not used."""

    steps: tuple[MeasuredStep, ...] = ()
    notes: tuple[str, ...] = ()
    conditions: Mapping[str, str] = MappingProxyType({})


class OwnRuns(NamedTuple):
    """The site and the programs (`program_identity`) of the runs that are used."""

    site: str
    programs: Collection[tuple[str, ...]]


def stated_steps(words: Sequence[str], results: Path, site: str) -> EarlierSteps:
    """Return the steps of studies, runs, logs or tables; a note if they are not of this site.

    Raises:
        HpcTrainError: one of them cannot be read, or has no step, or steps contradict each other.
    """
    found = [_steps(word, results, site) for word in words]
    return _together(found, ())


def own_steps(name: str, results: Path, wanted: OwnRuns) -> EarlierSteps:
    """Return the steps that runs of this name took on a site, and those of its calibration.

    Only of the runs of the same programs: the file may have been changed since.
    """
    found: list[EarlierSteps] = []
    notes: list[str] = []
    for one in (name, CALIBRATION.format(name)):
        if not (results / one).is_dir():
            continue
        try:
            found.append(_steps(str(results / one), results, wanted.site, wanted))
        except HpcTrainError as failure:
            way = f" ({failure.hint})" if failure.hint else ""
            notes.append(f"{results / one} is not used: {failure.message}{way}")
    return _together(found, notes)


def _together(found: Sequence[EarlierSteps], notes: Sequence[str]) -> EarlierSteps:
    conditions: dict[str, str] = {}
    for one in found:
        conditions |= one.conditions
    return EarlierSteps(
        steps=tuple(step for one in found for step in one.steps),
        notes=(*notes, *(note for one in found for note in one.notes)),
        conditions=conditions,
    )


def _steps(word: str, results: Path, site: str, wanted: OwnRuns | None = None) -> EarlierSteps:
    """Return the steps and conditions of one result; with `wanted`, only of those runs."""
    # Advice without earlier results needs no pandas.
    need("hpctrain advise with earlier results", "report")
    from hpc_train.pipeline.report_inputs import report_inputs, selection
    from hpc_train.tables.measured_steps import common_conditions, measured_steps
    from hpc_train.tables.runs import run_frame
    from hpc_train.tables.speedup import speedup_frame
    from hpc_train.tables.split_series import separated

    inputs = report_inputs([word], selection(results))
    elsewhere = sorted({run.manifest.plan.site for run in inputs.own if run.manifest} - {site})
    if wanted is not None and elsewhere:
        raise PlanError(f"its runs are from {', '.join(elsewhere)}", f"--measured {word}")
    runs = run_frame(inputs.study, inputs.records)
    others = _other_programs(inputs.own, wanted)
    runs = separated(runs[~runs["run_id"].isin(others)], inputs.study).runs
    if others and runs.empty:
        raise PlanError("its runs have another command", f"--measured {word}")
    points = speedup_frame(runs, inputs.study)
    steps = [replace(one, here=not elsewhere) for one in measured_steps(runs, points, word)]
    if not steps:
        raise PlanError(
            f"{word}: no point with a step time and known ranks",
            f"hpctrain report {word} shows what was read",
        )
    _check_agreement(word, steps)
    return EarlierSteps(
        steps=tuple(steps),
        notes=(*_notes(word, elsewhere, others, site), *_spread(word, runs)),
        conditions=common_conditions(runs, (PARAMETERS, FLOPS)),
    )


def _other_programs(own: Sequence[Run], wanted: OwnRuns | None) -> set[str]:
    """Return the runs of another program than the wanted ones."""
    if wanted is None:
        return set()
    known = {run.folder.run_id: program_identity(run.manifest.spec) for run in own if run.manifest}
    return {name for name, program in known.items() if program not in wanted.programs}


def _notes(
    word: str, elsewhere: Sequence[str], others: Collection[str], site: str
) -> Iterator[str]:
    if elsewhere:
        yield f"{word} was measured on {', '.join(elsewhere)}, not on {site}: its times hold there."
    if others:
        runs, first = f"{len(others)} run{'s' * (len(others) > 1)} of {word}", min(others)
        yield f"Not used, as the command was another: {runs}, such as --measured {first}."


def _spread(word: str, runs: pd.DataFrame) -> Iterator[str]:
    """Yield the sizes whose runs differ so much that their mean says little."""
    known = runs[runs["step_time_s"] > 0]
    for (_, ranks, _), seconds in known.groupby(["series", "ranks", "nodes"])["step_time_s"]:
        if seconds.max() > _CONTRADICTS * seconds.min():
            ends = range_text(Range(low=seconds.min(), high=seconds.max()), TIME)
            yield (
                f"The runs on {ranks:.0f} rank{'s' * (ranks != 1)} took {ends} a step, of which "
                f"the mean is used: hpctrain report {word} shows them."
            )


def _check_agreement(word: str, steps: Sequence[MeasuredStep]) -> None:
    """Refuse steps of one size that are far apart.

    Raises:
        PlanError: which of them is meant.
    """
    for _, same in groupby(sorted(steps, key=_size), _size):
        ordered = sorted(same, key=lambda one: one.seconds)
        fast, slow = ordered[0], ordered[-1]
        if slow.seconds > _CONTRADICTS * fast.seconds:
            times = " and ".join(
                f"{quantity_text(one.seconds, TIME)} ({one.source})" for one in (fast, slow)
            )
            raise PlanError(
                f"{word}: steps of the same size contradict each other: {times}",
                f"hpctrain report {word} shows its runs; give those of one: --measured RUN",
            )


def check_peak(question: Question) -> None:
    """Refuse steps that are faster than the GPU can compute them.

    Raises:
        PlanError: they are of another program, or what is stated of this one is wrong.
    """
    for one in question.measured:
        used = model_flops_utilisation(question.program, question.machine, one)
        if used is not None and used > _ROUNDED:
            raise PlanError(
                f"{one.source}: {quantity_text(one.seconds, TIME)} a step is {100 * used:.0f} % of "
                "the peak of the GPUs (MFU), more than they can compute",
                "give results of this program: --measured RUN; or state what it does: --condition "
                "precision=bf16, flops_per_sample",
            )


def _size(one: MeasuredStep) -> tuple[str, int, int, float]:
    return one.strategy, one.ranks, one.nodes or 0, one.batch or 0.0
