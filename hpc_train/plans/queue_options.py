"""The four options of sbatch that select a queue: from the job, in the site's form."""

from __future__ import annotations

from hpc_train.model.partition import ANY, Select
from hpc_train.model.plan import Setting
from hpc_train.plans.context import Context, from_job, from_site

QUEUE_OPTIONS = ("partition", "account", "qos", "constraint")


def queue_settings(context: Context, partition: Setting | None) -> dict[str, Setting]:
    """Return the job's values, and below `select.` the values that are written instead."""
    requested = {key: from_job(context.job, key) for key in QUEUE_OPTIONS} | {
        "partition": partition
    }
    settings = {key: setting for key, setting in requested.items() if setting is not None}
    select = context.partition.select
    return {**settings, **_selected(context, select)} if select else settings


def written(settings: dict[str, Setting], key: str) -> Setting | None:
    """Return the setting of an option as it is passed to sbatch."""
    return settings.get(f"select.{key}") or settings.get(key)


def _selected(context: Context, select: Select) -> dict[str, Setting]:
    job, site, key = context.job, context.site, context.key("select")
    any_name = job.value.partition if context.partition.name == ANY else None
    made = {
        "partition": Setting(
            value=select.partition or any_name, origin=site.near(key), why="what leads there"
        ),
        "qos": None if job.value.qos else from_site(site, f"{key}.qos", select.qos),
        "constraint": _constraint(context, select),
        "account": _account(context, select),
    }
    return {f"select.{name}": setting for name, setting in made.items() if setting is not None}


def _constraint(context: Context, select: Select) -> Setting | None:
    theirs, own = select.constraint, context.job.value.constraint
    if theirs is None or own is None:
        return from_site(context.site, context.key("select.constraint"), theirs)
    if set(theirs.split("&")) <= set(own.split("&")):
        return None
    parts = (f"({part})" if "|" in part else part for part in (theirs, own))
    why = f"with the partition's own ({context.near('select.constraint')})"
    return Setting(value="&".join(parts), origin=context.job.origin("constraint"), why=why)


def _account(context: Context, select: Select) -> Setting | None:
    suffix, account = select.account_suffix, context.job.value.account
    if suffix is None or account is None or account.endswith(suffix):
        return None
    why = f"{suffix} is the partition's ({context.near('select.account_suffix')})"
    return Setting(value=account + suffix, origin=context.job.origin("account"), why=why)
