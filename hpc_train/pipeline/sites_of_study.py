"""The axis `site` of a study -> the profiles of its points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import HpcTrainError, SpecError, UnknownNameError
from hpc_train.model.study import SITE_AXIS, Point, PointSite
from hpc_train.pipeline.detection.default_site import SiteChoice
from hpc_train.pipeline.prepared import PreparedSite, prepared_site
from hpc_train.sites.load import load_site
from hpc_train.sites.search import NEXT, find_profile, profile_files
from hpc_train.yamlfile import list_files, nearest_file


def sites_of_study(points: Sequence[Point], option: str | None) -> dict[str, PreparedSite]:
    """Return name in the axis -> site, in the order of the axis; `option` is that of --site.

    Raises:
        SpecError: --site is given, too, or there is no such file. UnknownNameError: no profile of
        that name. HpcTrainError: a profile is wrong.
    """
    named = {one.site.name: one.site for one in points if one.site is not None}
    first = next(iter(named.values()))
    if option:
        raise SpecError(
            f"--site {option}: {first.origin}: the axis site names the sites of this study",
            f"change the axis: --set 'axes.{SITE_AXIS}=[{option}]'",
        )
    return {name: _loaded(site) for name, site in named.items()}


def _loaded(site: PointSite) -> PreparedSite:
    try:
        path = find_profile(site.name)
        _check_file(path)
        profile = load_site(path)
    except UnknownNameError as failure:
        if failure.name != site.name:
            raise
        known = [path.stem for path in profile_files()]
        raise UnknownNameError("site", site.name, known, site.origin, hint=NEXT) from None
    except HpcTrainError as failure:
        failure.message = f"{site.origin}: axes.site: {failure.message}"
        raise
    return prepared_site(SiteChoice(name=site.name), path, profile)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise SpecError(f"{path}: it is a folder, not the file of a profile", NEXT)
    if not path.exists():
        raise SpecError(f"{path}: no such file{nearest_file(path)}", list_files(path))
