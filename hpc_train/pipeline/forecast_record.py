"""Forecasts that advice stored -> how later runs checked them, for a report and for a site."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.advice.forecast_check import added, checked_forecasts, stored_forecasts
from hpc_train.errors import HpcTrainError, StoreError
from hpc_train.model.advice import Advice
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.run import Run
from hpc_train.model.stored_forecast import CheckedForecast
from hpc_train.pipeline.report_inputs import ReportInputs, report_inputs, selection
from hpc_train.runs.forecast_file import names_with_forecasts, read_forecasts, update_forecasts

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


def store(advice: Advice, machine: MachineSize, name: str, results: Path) -> tuple[str, ...]:
    """Store the forecasts of advice for later runs; return a note if that fails."""
    new = stored_forecasts(advice, machine, time.time())
    if not new:
        return ()
    try:
        update_forecasts(results, name, lambda known: added(known, new))
    except StoreError as failure:
        return (f"These forecasts are not stored, so that no run checks them: {failure.message}",)
    return ()


def forecasts_of_study(
    inputs: ReportInputs, runs: pd.DataFrame, points: pd.DataFrame
) -> tuple[CheckedForecast, ...]:
    """Return the forecasts that the runs of one study on one site check.

    A file of forecasts that cannot be read is a warning: the report has its results without it.
    """
    place = None if inputs.packed else _place(inputs.own)
    if place is None:
        return ()
    results, name, site = place
    try:
        stored = [one for one in read_forecasts(results, name) if one.site == site]
    except StoreError as failure:
        _log.warning("%s", failure.message)
        return ()
    if not stored:
        return ()
    from hpc_train.tables.measured_steps import measured_steps

    return checked_forecasts(stored, measured_steps(runs, points, name))


def _place(own: Sequence[Run]) -> tuple[Path, str, str] | None:
    """Return the folder of all results, the name and the site that these runs have in common."""
    homes = {run.folder.path.parent for run in own}
    sites = {run.manifest.plan.site for run in own if run.manifest is not None}
    if len(homes) != 1 or len(sites) != 1:
        return None
    home = homes.pop().absolute()
    return home.parent, home.name, sites.pop()


def site_record(results: Path, site: str) -> tuple[str, ...]:
    """Return a sentence on the forecasts for a site that later runs checked, if there are any."""
    from hpc_train.tables.runs import run_frame
    from hpc_train.tables.speedup import speedup_frame

    found: list[CheckedForecast] = []
    for name in names_with_forecasts(results):
        try:
            if not any(one.site == site for one in read_forecasts(results, name)):
                continue
            inputs = report_inputs([str(results / name)], selection(results))
            runs = run_frame(inputs.study, inputs.records)
            found += forecasts_of_study(inputs, runs, speedup_frame(runs, inputs.study))
        except HpcTrainError:
            # Most have no run yet; `report` says what is wrong with those that have.
            continue
    return _sentences(found, site)


def _sentences(found: Sequence[CheckedForecast], site: str) -> tuple[str, ...]:
    if not found:
        return ()
    held = sum(one.held for one in found)
    counted = f"{len(found)} forecast{'s' * (len(found) != 1)}"
    text = f"Record on {site}: {counted} checked by later runs, {held} within the bounds."
    missed = [one for one in found if not one.held]
    names = ", ".join(map(_size, missed[:3]))
    return (f"{text} Outside: {names}{' …' * (len(missed) > 3)}." if missed else text,)


def _size(one: CheckedForecast) -> str:
    ranks = one.forecast.ranks
    return f"{one.forecast.strategy} on {ranks} rank{'s' * (ranks != 1)}"
