"""Runs of a study -> gates and price of their site, or why they are unknown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hpc_train.base.errors import HpcTrainError, UnknownNameError
from hpc_train.runs.run import Run
from hpc_train.sites.profile import Reporting


class SiteReporting(NamedTuple):
    """Gates and price of a site; `unknown` is the reason why its gates are not known."""

    said: Reporting = Reporting()
    unknown: str = ""


def site_reporting(own: Sequence[Run]) -> SiteReporting:
    """Return gates and price of the runs' site; gates of several sites apply if they are equal.

    A profile may have been removed since: this is not an error here, but it must differ from a site
    without gates.
    """
    places = sorted({(run.manifest.plan.site, _profile(run)) for run in own if run.manifest})
    if own and not places:
        return SiteReporting(unknown=f"run.json of {own[0].folder.run_id} cannot be read")
    found = []
    for name, file in places:
        try:
            found.append(_reporting(name, file))
        except UnknownNameError:
            return SiteReporting(unknown=f"there is no profile {name} on the search path")
        except HpcTrainError as failure:
            return SiteReporting(unknown=f"{name}: {failure.message}")
    if any(each.gates != found[0].gates for each in found):
        names = ", ".join(f"{name} ({file})" for name, file in places)
        return SiteReporting(
            unknown=f"the runs are from several sites with different gates: {names}"
        )
    if len(found) > 1:
        return SiteReporting(Reporting(gates=found[0].gates))
    return SiteReporting(found[0] if found else Reporting())


def _reporting(name: str, file: str) -> Reporting:
    # Foreign logs need no profiles.
    from hpc_train.sites.load import load_site

    return load_site(file if file and Path(file).is_file() else name).value.report


def _profile(run: Run) -> str:
    return str(run.manifest.provenance.get("profile", "")) if run.manifest else ""
