"""Options of sbatch that the site refuses."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.plan import Setting
from hpc_train.plans.reasons import setting_of
from hpc_train.plans.resolve import Site

# What a job can do without; the log of a requeued job is then erased where the site does so.
_SPARE = ("open-mode",)


def allowed_directives(
    directives: tuple[tuple[str, str], ...], site: Site, settings: dict[str, Setting]
) -> tuple[tuple[str, str], ...]:
    """Return the directives without those that are only a comfort and that the site refuses.

    Raises:
        PlanError: what is left is forbidden, with the site's reason.
    """
    reasons = {option.lstrip("-"): (option, why) for option, why in site.value.forbidden.items()}
    kept = []
    for option, value in directives:
        if option not in reasons:
            kept.append((option, value))
        elif option not in _SPARE:
            spelled, why = reasons[option]
            origin = setting_of(option, settings).origin
            raise PlanError(
                f"{origin}: {site.value.name} refuses --{option}: {why} "
                f"({site.near(f'forbidden.{spelled}')})",
                "leave it out of the job; if the job does not say it, the profile must "
                "(gpu_request, cpu_request, mem_request)",
            )
    return tuple(kept)
