"""Runs of two sides -> the settings in which they differ, with the topology of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpc_train.model.run import Run
from hpc_train.pipeline.run_topologies import Topologies
from hpc_train.runs.settings_diff import SettingDifference, differences

if TYPE_CHECKING:
    import pandas as pd


def compared_settings(
    own: tuple[Sequence[Run], Sequence[Run]],
    runs: tuple[pd.DataFrame, pd.DataFrame],
    topologies: Sequence[Topologies],
) -> tuple[SettingDifference, ...]:
    """Return name, values in A, values in B; each argument has that of A, then that of B."""
    from hpc_train.reports.topology_caveats import topology_differences

    recorded = [_conditions(side) for side in runs]
    return (*differences(*own, recorded), *topology_differences(*topologies))


def _conditions(runs: pd.DataFrame) -> list[dict[str, str]]:
    """Return the recorded conditions of each run, with the transport that its logs show."""
    stated = runs["conditions"] if "conditions" in runs else ()
    used = runs["transport"] if "transport" in runs else [""] * len(runs)
    pairs = [(own, name) for own, name in zip(stated, used, strict=False) if isinstance(own, dict)]
    return [{**own, "transport": name} if name else own for own, name in pairs]
