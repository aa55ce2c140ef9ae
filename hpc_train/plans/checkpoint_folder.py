"""The folder of the checkpoints that a job names: one that every node and every start reaches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from hpc_train.errors import PlanError
from hpc_train.plans.context import Context

CHECKPOINTS = "HPCTRAIN_CHECKPOINTS"
_KEY = f"env.{CHECKPOINTS}"
# Folders that usually are a disk or the memory of one node.
_NODE_LOCAL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # named to be refused


def check_folder(context: Context) -> tuple[str, ...]:
    """Warn of a folder that only one node has, where the next start may be on another one.

    Raises:
        PlanError: several nodes need one folder; a variable in its name, which nothing replaces.
    """
    job, nodes = context.job, context.job.value.resources.nodes
    named = str(job.value.env.get(CHECKPOINTS, ""))
    place = job.near(_KEY)
    if named.startswith("~") or "$" in named:
        raise PlanError(
            f"{place}: {_KEY} = {named}: values of env are passed unchanged, so that this would be "
            "a folder of that name",
            f"write the path, or in setup: export {CHECKPOINTS}={named}",
        )
    local = next((one for one in _node_local(context) if _is_below(named, one)), None)
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


def _node_local(context: Context) -> Iterator[str]:
    yield from _NODE_LOCAL
    for storage in context.site.value.storage.values():
        if storage.node_local and storage.path and storage.path.startswith("/"):
            # As far as the path is known: /mnt/bb/$USER.
            yield storage.path.partition("/$")[0]


def _is_below(folder: str, parent: str) -> bool:
    return bool(parent) and PurePosixPath(folder).is_relative_to(parent)
