"""Options of sbatch that the site refuses."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.plan import Setting
from hpc_train.plans.context import Site
from hpc_train.plans.explanations import setting_of


def refused(option: str, site: Site) -> str | None:
    """Return how the profile spells an option that the site refuses; None when it does not."""
    spelled = (name for name in site.value.forbidden if name.lstrip("-") == option)
    return next(spelled, None)


def check_forbidden(
    directives: tuple[tuple[str, str], ...], site: Site, settings: dict[str, Setting]
) -> None:
    """Refuse a job that needs what the site refuses.

    Raises:
        PlanError: with the site's reason.
    """
    for option, _ in directives:
        spelled = refused(option, site)
        if spelled is not None:
            raise PlanError(
                f"{setting_of(option, settings).origin}: {site.value.name} refuses --{option}: "
                f"{site.value.forbidden[spelled]} ({site.near(f'forbidden.{spelled}')})",
                "leave it out of the job; what no job says, the profile must say otherwise "
                "(gpu_request, cpu_request, mem_request)",
            )
