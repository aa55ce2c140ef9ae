"""single: one process without a launcher."""

from __future__ import annotations

from hpc_train.plans.launchers.base import Launcher, no_options, only_rank, wrapped
from hpc_train.plans.plan import Launch, LaunchRequest


def command(request: LaunchRequest) -> Launch:
    """Return the program itself, as rank 0 of 1.

    Raises:
        PlanError: `launcher_args` are given.
    """
    no_options("single", request)
    return Launch(argv=wrapped(request), rank_env=only_rank(), slots_per_node=1, direct=True)


LAUNCHER = Launcher(command=command, one_node=True, one_rank=True, data_parallel=True)
