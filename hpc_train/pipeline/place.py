"""Where a site wants its jobs submitted from, and where this shell is."""

from __future__ import annotations

import os
from pathlib import Path

from hpc_train.errors import PlanError
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced


def wrong_place(site: Sourced[SiteProfile]) -> str:
    """Return why nothing should be submitted from this folder; empty when nothing speaks against.

    Variables in the profile's word are those of this shell.
    """
    wanted = site.value.submit_from
    if wanted is None or site.value.scheduler == "local":
        return ""
    start = f"{site.near('submit_from')}: {site.value.name} takes jobs from {wanted} only"
    folder = os.path.expandvars(os.path.expanduser(wanted))  # noqa: PTH111 - a variable may be first
    if "$" in folder:
        return f"{start}, and this shell does not know where that is"
    here = Path.cwd().resolve()
    if here.is_relative_to(Path(folder).resolve()):
        return ""
    return f"{start} ({folder}), and this is {here}"


def check_place(site: Sourced[SiteProfile]) -> None:
    """Refuse to submit from elsewhere.

    Raises:
        PlanError: with the way there.
    """
    problem = wrong_place(site)
    if problem:
        wanted = site.value.submit_from or ""
        raise PlanError(problem, f'cd "{wanted}" and submit from there')
