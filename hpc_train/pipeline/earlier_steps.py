"""Earlier results of a program -> the measured steps that advice starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from hpc_train.errors import HpcTrainError, PlanError
from hpc_train.extras import need
from hpc_train.model.advice import MeasuredStep
from hpc_train.model.operations import FLOPS, PARAMETERS
from hpc_train.model.value import Value

# The name of the study that `advise --calibrate` submits.
CALIBRATION = "{}-calibration"


class EarlierSteps(Value, frozen=True, kw_only=True):
    """The steps, the conditions of their runs, and why results that are there were not used."""

    steps: tuple[MeasuredStep, ...] = ()
    notes: tuple[str, ...] = ()
    conditions: Mapping[str, str] = MappingProxyType({})


def stated_steps(words: Sequence[str], results: Path) -> EarlierSteps:
    """Return the steps of studies, runs, logs or tables.

    Raises:
        HpcTrainError: one of them cannot be read, or has no step.
    """
    steps: list[MeasuredStep] = []
    conditions: dict[str, str] = {}
    for word in words:
        own, stated = _steps(word, results)
        steps += own
        conditions |= stated
    return EarlierSteps(steps=tuple(steps), conditions=conditions)


def own_steps(name: str, site: str, results: Path) -> EarlierSteps:
    """Return the steps that runs of this name took on this site, and those of its calibration."""
    found: list[MeasuredStep] = []
    notes: list[str] = []
    conditions: dict[str, str] = {}
    for one in (name, CALIBRATION.format(name)):
        if not (results / one).is_dir():
            continue
        try:
            steps, stated = _steps(str(results / one), results, site)
        except HpcTrainError as failure:
            notes.append(f"{results / one} is not used: {failure.message}")
        else:
            found += steps
            conditions |= stated
    return EarlierSteps(steps=tuple(found), notes=tuple(notes), conditions=conditions)


def _steps(
    word: str, results: Path, site: str | None = None
) -> tuple[list[MeasuredStep], dict[str, str]]:
    """Return the steps and conditions of one result; with a `site`, only of runs there."""
    # Advice without earlier results needs no pandas.
    need("hpctrain advise with earlier results", "report")
    from hpc_train.pipeline.report_inputs import report_inputs, selection
    from hpc_train.tables.measured_steps import common_conditions, measured_steps
    from hpc_train.tables.runs import run_frame
    from hpc_train.tables.speedup import speedup_frame

    inputs = report_inputs([word], selection(results))
    elsewhere = {run.manifest.plan.site for run in inputs.own if run.manifest} - {site}
    if site is not None and elsewhere:
        raise PlanError(f"its runs are from {', '.join(sorted(elsewhere))}", f"--measured {word}")
    runs = run_frame(inputs.study, inputs.records)
    steps = measured_steps(runs, speedup_frame(runs, inputs.study), word)
    if not steps:
        raise PlanError(
            f"{word}: no point with a step time and known ranks",
            f"hpctrain report {word} shows what was read",
        )
    return steps, common_conditions(runs, (PARAMETERS, FLOPS))
