"""More options of sbatch: what job and site ask for beside what hpctrain decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpc_train.errors import PlanError
from hpc_train.model.plan import Setting
from hpc_train.model.sbatch import directive_text
from hpc_train.plans.context import Job, Site

PREFIX = "directives."


def extra_settings(job: Job, site: Site) -> dict[str, Setting]:
    """Return `directives.NAME` for each option; a job's wins over the site's."""
    both = (site.value.directives, site), (job.value.directives, job)
    return {
        f"{PREFIX}{name}": Setting(value=value, origin=source.near(f"{PREFIX}{name}"))
        for directives, source in both
        for name, value in directives.items()
    }


def extra_directives(
    settings: Mapping[str, Setting], ours: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Return options and values in order, behind `ours`.

    Raises:
        PlanError: this job has the option from hpctrain already.
    """
    known = dict(ours)
    found = []
    for key, setting in settings.items():
        name = key.removeprefix(PREFIX)
        text = directive_text(setting.value) if key.startswith(PREFIX) else None
        if text is None:
            continue
        if name in known:
            raise PlanError(
                f"{setting.origin}: {key}: this job has --{name}={known[name]} already, and "
                "sbatch takes only the last of two"
            )
        found.append((name, text))
    return tuple(found)
