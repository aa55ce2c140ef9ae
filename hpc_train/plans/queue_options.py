"""Where a job waits: its partition and quality of service, and the words that lead there."""

from __future__ import annotations

from hpc_train.model.partition import ANY, Partition, Qos, Select
from hpc_train.model.plan import Setting
from hpc_train.model.value import Value
from hpc_train.plans.context import Job, Site, from_job, from_site, partition_named, partition_of

# Options of sbatch; their words got their meaning from the site.
QUEUE = ("partition", "account", "qos", "constraint")


class Queue(Value, frozen=True, kw_only=True):
    """What limits a job: entries of the profile, with their place in it, and who pays."""

    partition: tuple[int, Partition] | None
    qos: tuple[int, Qos] | None
    account: str | None


def queue_of(job: Job, site: Site) -> Queue:
    """Return the queue of a job; without a qos, that of the partition or its default one."""
    select = _select(job, site)
    qos = job.value.qos or (select[1].qos if select else None)
    return queue_named(site, job.value.partition, qos, job.value.account)


def queue_named(site: Site, partition: str | None, qos: str | None, account: str | None) -> Queue:
    """Return the queue that these names lead to."""
    found = partition_named(partition, site)
    name = found[1].name if found else partition
    return Queue(partition=found, qos=_qos(site, qos, name), account=account)


def queue_settings(job: Job, site: Site, partition: Setting | None) -> dict[str, Setting]:
    """Return the job's words, and below `select.` what is written instead to get there."""
    said = {key: from_job(job, key) for key in QUEUE} | {"partition": partition}
    settings = {key: setting for key, setting in said.items() if setting is not None}
    return {**settings, **_selected(job, site)}


def written(settings: dict[str, Setting], key: str) -> Setting | None:
    """Return the setting of a word of the queue as sbatch is to read it."""
    return settings.get(f"select.{key}") or settings.get(key)


def _select(job: Job, site: Site) -> tuple[str, Select] | None:
    found = partition_of(job, site)
    if found is None or found[1].select is None:
        return None
    return f"partitions.{found[0]}.select", found[1].select


def _selected(job: Job, site: Site) -> dict[str, Setting]:
    chosen = _select(job, site)
    if chosen is None:
        return {}
    key, select = chosen
    found = partition_of(job, site)
    any_name = job.value.partition if found and found[1].name == ANY else None
    made = {
        "partition": Setting(
            value=select.partition or any_name, origin=site.near(key), why="what leads there"
        ),
        "qos": None if job.value.qos else from_site(site, f"{key}.qos", select.qos),
        "constraint": _constraint(job, site, key, select),
        "account": _account(job, site, key, select),
    }
    return {f"select.{name}": setting for name, setting in made.items() if setting is not None}


def _constraint(job: Job, site: Site, key: str, select: Select) -> Setting | None:
    theirs, own = select.constraint, job.value.constraint
    if theirs is None or own is None:
        return from_site(site, f"{key}.constraint", theirs)
    if set(theirs.split("&")) <= set(own.split("&")):
        return None
    parts = (f"({part})" if "|" in part else part for part in (theirs, own))
    why = f"with the partition's own ({site.near(f'{key}.constraint')})"
    return Setting(value="&".join(parts), origin=job.origin("constraint"), why=why)


def _account(job: Job, site: Site, key: str, select: Select) -> Setting | None:
    suffix, account = select.account_suffix, job.value.account
    if suffix is None or account is None or account.endswith(suffix):
        return None
    why = f"{suffix} is the partition's ({site.near(f'{key}.account_suffix')})"
    return Setting(value=account + suffix, origin=job.origin("account"), why=why)


def _qos(site: Site, name: str | None, partition: str | None) -> tuple[int, Qos] | None:
    rest = None
    for index, qos in enumerate(site.value.qos):
        mine = not qos.partitions or partition in qos.partitions
        if qos.name == name or (name is None and qos.default and mine):
            return index, qos
        if qos.name == ANY and name is not None:
            rest = index, qos
    return rest
