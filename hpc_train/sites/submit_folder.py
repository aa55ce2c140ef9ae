"""Check of the folder that jobs are submitted from."""

from __future__ import annotations

import os
from pathlib import Path

from hpc_train.base.errors import PlanError
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.profile import SourcedSite


def wrong_place(site: SourcedSite) -> str:
    """Return why a site does not accept submissions from this folder; empty if it does.

    Variables in the profile's value are those of this shell.
    """
    wanted = site.value.submit_from
    if wanted is None or find_batch_system(site.value.scheduler).this_machine:
        return ""
    start = f"{site.near('submit_from')}: {site.value.name} accepts jobs from {wanted} only"
    folder = os.path.expandvars(os.path.expanduser(wanted))  # noqa: PTH111 - a variable may be first
    if "$" in folder:
        return f"{start}, which is not defined in this shell"
    here = Path.cwd().resolve()
    if here.is_relative_to(Path(folder).resolve()):
        return ""
    return f"{start} ({folder}), and this is {here}"


def check_place(site: SourcedSite) -> None:
    """Refuse to submit from another folder.

    Raises:
        PlanError: with the command that changes the folder.
    """
    problem = wrong_place(site)
    if problem:
        wanted = site.value.submit_from or ""
        raise PlanError(problem, f'cd "{wanted}" and submit from there')
