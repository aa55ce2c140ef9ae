"""What is planned and rendered: a job or the points of a study, each with its site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpc_train.data_folders import template_path
from hpc_train.model.batch_system import BatchSystem
from hpc_train.model.job import JobSpec
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.site import SiteProfile
from hpc_train.model.study import RefusedPoint, Study
from hpc_train.model.submission import Script
from hpc_train.model.value import Sourced, Value
from hpc_train.pipeline.detection.default_site import SiteChoice
from hpc_train.registry import find_batch_system
from hpc_train.sites.search import announcement


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
    """One job, ready to be submitted at a site; `stem` names its runs.

    `request` is sent with the script to a scheduler without directives; a submission completes it.
    """

    axes: dict[str, Any]
    job: Sourced[JobSpec]
    place: PreparedSite
    plan: LaunchPlan
    script: Script
    stem: str
    request: dict[str, Any] | None = None


class Prepared(Value, frozen=True, kw_only=True):
    """A job (one point, no study) or a study, planned and rendered.

    `sites` has several only if they are an axis; `allocation` is the script of a nested study;
    `filled` names what the jobs left out.
    """

    name: str
    sites: tuple[PreparedSite, ...]
    study: Study | None
    points: tuple[PreparedPoint, ...]
    refused: tuple[RefusedPoint, ...] = ()
    allocation: Script | None = None
    filled: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def first(self) -> PreparedSite:
        """The only site, or the first of several."""
        return self.sites[0]

    @property
    def notices(self) -> tuple[str, ...]:
        """Why the site was chosen, unless the user named it, and what was filled in."""
        why = self.first.choice.notice if self.first.choice is not None else ""
        return (why, *self.filled) if why else self.filled

    def points_at(self, site: PreparedSite) -> tuple[PreparedPoint, ...]:
        """Return the points of a site."""
        return tuple(point for point in self.points if point.place is site)


def prepared_site(choice: SiteChoice, profile: Path, site: Sourced[SiteProfile]) -> PreparedSite:
    """Return a chosen site, with the folders of its templates."""
    return PreparedSite(
        profile=profile.absolute(),
        site=site,
        choice=choice,
        folders=template_path(profile),
        # By the path as it was found: an absolute one may be of any layer.
        notices=announcement(choice.name, profile),
    )


def place_problem(prepared: Prepared) -> str:
    """Return why jobs cannot be submitted from this folder, or an empty string."""
    bound = [one.site for one in prepared.sites if one.site.value.submit_from is not None]
    if not bound:
        return ""
    from hpc_train.sites.submit_folder import wrong_place

    return next(filter(None, map(wrong_place, bound)), "")
