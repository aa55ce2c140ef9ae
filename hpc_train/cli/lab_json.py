"""The lab as JSON: `hpctrain lab status --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpc_train.lab.lab_status import LabState
    from hpc_train.lab.settings import Settings
    from hpc_train.lab.state_file import Lab


def lab_json(found: Lab | None, state: LabState | None) -> dict[str, Any]:
    """Return the settings and the state of the lab; `up` is false without one."""
    if found is None or state is None:
        return {"schema": 1, "up": False}
    return {
        "schema": 1,
        "up": not state.faults,
        "faults": state.faults,
        "slurm_version": found.slurm_version,
        "settings": {**_fields(found.settings), "mem": str(found.settings.mem)},
        "slurm_conf": f"{found.settings.folder}/slurm.conf",
        "env_file": f"{found.settings.folder}/env",
        "profile": found.profile,
        "nodes": [{"name": name, "state": word} for name, word in state.nodes.items()],
        "jobs": state.jobs,
    }


def _fields(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__}
