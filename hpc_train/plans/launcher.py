"""Which launcher starts the ranks, as far as the site has it."""

from __future__ import annotations

from hpc_train.errors import PlanError, UnknownNameError
from hpc_train.model.plan import Setting
from hpc_train.plans.context import Job, Site, from_job
from hpc_train.registry import names


def resolve_launcher(job: Job, site: Site) -> Setting:
    """Return the job's launcher, or the site's.

    Raises:
        UnknownNameError: there is none of that name.
        PlanError: the site forbids it or does not have it.
    """
    launchers = site.value.launchers
    chosen = from_job(job, "launcher") or Setting(
        value=launchers.default, origin=site.origin("launchers.default"), why="the site's default"
    )
    name = chosen.value
    if name in launchers.forbidden:
        raise PlanError(
            f"{chosen.origin}: {site.value.name} forbids {name}: {launchers.forbidden[name]}",
            f"allowed: {', '.join(launchers.allowed)}",
        )
    if name in launchers.allowed:
        return chosen
    if name not in names("launchers"):
        raise UnknownNameError("launcher", name, launchers.allowed, chosen.origin)
    raise PlanError(
        f"{chosen.origin}: {site.value.name} does not offer {name}; "
        f"allowed: {', '.join(launchers.allowed)}"
    )


def launcher_warnings(chosen: Setting, site: Site) -> tuple[str, ...]:
    """Return why the site advises against a launcher, if it does."""
    name = chosen.value
    why = site.value.launchers.warned.get(name)
    if why is None:
        return ()
    place = site.near(f"launchers.warned.{name}")
    return (f"{chosen.origin}: {site.value.name} advises against {name}: {why} ({place})",)
