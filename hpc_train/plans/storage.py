"""The file systems that a job names, and the options of sbatch that request them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from hpc_train.base.errors import PlanError, UnknownNameError
from hpc_train.base.slurm_options import DIRECTIVE_VALUE
from hpc_train.jobs.job import SourcedJob
from hpc_train.plans.context import Context, show
from hpc_train.plans.plan import Setting
from hpc_train.sites.batch_system import BatchSystem
from hpc_train.sites.profile import SourcedSite

CHECKPOINTS = "HPCTRAIN_CHECKPOINTS"
_CHECKPOINTS_KEY = f"env.{CHECKPOINTS}"
# Folders that usually are a disk or the memory of one node.
_NODE_LOCAL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # named to be refused
_OPTION = re.compile(r"[a-z][a-z-]*")
# Options whose value is a list.
_JOINED = {"gres": ",", "constraint": "&", "licenses": ",", "filesystems": ":", "storage": "+"}


def storage_settings(job: SourcedJob, site: SourcedSite) -> dict[str, Setting]:
    """Return each file system with its path, and the options that it needs.

    Raises:
        UnknownNameError: the site has no storage with that name.
        PlanError: an option in the profile is not valid in a directive.
    """
    settings = {}
    for index, name in enumerate(job.value.storage):
        place = job.near(f"storage.{index}")
        if name not in site.value.storage:
            what = f"storage of {site.value.name}"
            raise UnknownNameError(what, name, site.value.storage, place, show(site))
        storage = site.value.storage[name]
        settings[f"storage.{name}"] = Setting(
            value=storage.path, origin=place, why=storage.note or ""
        )
        for option, value in storage.request.items():
            origin = site.near(f"storage.{name}.request.{option}")
            # Directives have no quoting.
            if not _OPTION.fullmatch(option):
                raise PlanError(
                    f"{origin}: {option!r} is no option of sbatch; write it without dashes"
                )
            if value and not DIRECTIVE_VALUE.fullmatch(value):
                raise PlanError(
                    f"{origin}: {option} = {value!r} cannot be written as an #SBATCH value"
                )
            why = f"what storage {name} needs ({place})"
            settings[f"storage.{name} --{option}"] = Setting(value=value, origin=origin, why=why)
    return settings


def with_storage(
    directives: tuple[tuple[str, str], ...], settings: Mapping[str, Setting], batch: BatchSystem
) -> tuple[tuple[str, str], ...]:
    """Return the directives with the options that the storage of one job or several needs.

    Raises:
        PlanError: a directive already has another value.
    """
    options = dict(directives)
    for key, setting in settings.items():
        name, _, request = key.removeprefix("storage.").rpartition(" --")
        if not (key.startswith("storage.") and name and batch.prefix):
            continue
        for option, value in batch.options_in(request, setting.value):
            there = options.get(option)
            if there is None or value in there.split(_JOINED.get(option, "\0")):
                options.setdefault(option, value)
            elif option in _JOINED:
                options[option] = f"{there}{_JOINED[option]}{value}"
            else:
                raise PlanError(
                    f"{setting.origin}: storage {name} needs --{option}={value}, but the job has "
                    f"--{option}={there}"
                )
    return tuple(options.items())


def check_checkpoint_folder(context: Context) -> tuple[str, ...]:
    """Warn of a folder that only one node has, where the next start may be on another one.

    Raises:
        PlanError: several nodes need one folder; a variable in its name, which nothing replaces; no
        name.
    """
    job, nodes = context.job, context.job.value.resources.nodes
    named = str(job.value.env.get(CHECKPOINTS, ""))
    place = job.near(_CHECKPOINTS_KEY)
    if CHECKPOINTS in job.value.env and not named:
        raise PlanError(f"{place}: {_CHECKPOINTS_KEY} is empty", "name a folder, or leave it out")
    if named.startswith("~") or "$" in named:
        raise PlanError(
            f"{place}: {_CHECKPOINTS_KEY} = {named}: values of env are passed unchanged, so this "
            "is a folder of that name",
            "write the whole path, such as /scratch/me/ckpt",
        )
    own = [one.path for one in context.site.value.storage.values() if one.node_local and one.path]
    # As far as the path is known: /mnt/bb/$USER.
    folders = [*_NODE_LOCAL, *(p.partition("/$")[0] for p in own if p.startswith("/"))]
    local = next((one for one in folders if PurePosixPath(named).is_relative_to(one)), None)
    if local is None or not context.batch.requeues:
        return ()
    if nodes > 1:
        raise PlanError(
            f"{place}: {named} is on each node's own disk ({local}), and a checkpoint of {nodes} "
            "nodes is one folder",
            "name a folder that all nodes share, or leave it out: the run folder is one",
        )
    return (
        f"{place}: {named} is on the node's own disk ({local}): a start on another node, or after "
        "the disk was emptied, begins at step 0",
    )
