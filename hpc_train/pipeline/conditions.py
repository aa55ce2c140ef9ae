"""A run -> what has to be the same in every run of a series, as far as it is recorded."""

from __future__ import annotations

from hpc_train.model.run import Run
from hpc_train.model.transport import Transport


def conditions_of(run: Run, transport: Transport | None) -> dict[str, str]:
    """Return the recorded conditions of a run by name: `torch`, `nccl`, `partition`, `commit` …"""
    return {}
