"""find_batch_system: the name of a scheduler -> what it gives inside a job."""

from __future__ import annotations

from typing import cast

import msgspec

from hpc_train.errors import UnknownNameError
from hpc_train.model.batch_system import BatchSystem
from hpc_train.registry import load


def find_batch_system(name: str) -> BatchSystem:
    """Return what the scheduler of that name gives inside a job.

    An executor of a package that registers no batch system gives what this machine gives, except
    that its jobs may run elsewhere.

    Raises:
        PluginError: the plug-in cannot be loaded.
    """
    try:
        found = cast(BatchSystem, load("batch_systems", name))
    except UnknownNameError:
        local = cast(BatchSystem, load("batch_systems", "local"))
        found = msgspec.structs.replace(local, this_machine=False)
    return msgspec.structs.replace(found, name=name)
