"""single: one plain process, no launcher at all."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.plan import Launch, LaunchRequest, Text, Token
from hpc_train.plans.launchers.base import wrapped


def command(request: LaunchRequest) -> Launch:
    """Return the program itself, as rank 0 of 1.

    Raises:
        PlanError: more than one rank was asked for.
    """
    if request.topology.world_size > 1:
        raise PlanError(
            f"the launcher single runs one process, not {request.topology.world_size} ranks",
            "use --launcher torchrun, mpirun or spawn, or one task on one node",
        )
    counts = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    rank_env: tuple[tuple[str, Token], ...] = tuple(
        (name, Text(text=value)) for name, value in counts.items()
    )
    argv = wrapped(request.command)
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=1, direct=True)
