"""Modules and shell lines that a job runs before its ranks, those of the site first."""

from __future__ import annotations

import shlex

from hpc_train.model.plan import Setting
from hpc_train.plans.containers.resolve import container_setup
from hpc_train.plans.context import Context, Site


def setup_settings(context: Context, script: str | None) -> dict[str, Setting]:
    """Return `modules_purge`, `modules_use.0`, …, `modules.0`, … and `setup.0`, … in their order.

    The vendor's script follows the site's lines, which load its modules.
    """
    job, site = context.job, context.site
    why = "the vendor's own settings; they need not be repeated"
    modules = [
        *((name, context.near(f"modules.{i}")) for i, name in enumerate(context.partition.modules)),
        *((name, site.origin(f"modules.{i}")) for i, name in enumerate(site.value.modules)),
    ]
    modules += [(name, job.origin(f"modules.{i}")) for i, name in enumerate(job.value.modules)]
    lines = [(line, site.origin(f"setup.{i}")) for i, line in enumerate(site.value.setup)]
    sourced = site.near("network.script") if script is not None else None
    if script is not None and sourced is not None:
        lines.append((f"source {shlex.quote(script)}", sourced))
    lines += container_setup(job, site)
    lines += [(line, job.origin(f"setup.{i}")) for i, line in enumerate(job.value.setup)]
    folders = [
        (folder, site.origin(f"modules_use.{i}")) for i, folder in enumerate(site.value.modules_use)
    ]
    return _purge(site) | {
        f"{key}.{i}": Setting(value=value, origin=origin, why=why * (origin == sourced))
        for key, found in (("modules_use", folders), ("modules", modules), ("setup", lines))
        for i, (value, origin) in enumerate(found)
    }


def _purge(site: Site) -> dict[str, Setting]:
    if not site.value.modules_purge:
        return {}
    why = "the job must not depend on what the submitting shell has loaded"
    return {"modules_purge": Setting(value=True, origin=site.origin("modules_purge"), why=why)}


def values_of(key: str, settings: dict[str, Setting]) -> tuple[str, ...]:
    """Return the values of `modules_use.0`, … `modules.0`, … or `setup.0`, … in their order."""
    return tuple(s.value for name, s in settings.items() if name.partition(".")[0] == key)
