"""LaunchPlan -> sbatch options."""

from __future__ import annotations

from typing import Any

from hpc_train.errors import PlanError
from hpc_train.model.plan import DIRECTIVE_VALUE, Launch, Setting, Topology
from hpc_train.plans.resolve import Site


def resolve_directives(
    site: Site, settings: dict[str, Setting], topology: Topology, launch: Launch
) -> tuple[tuple[str, str], ...]:
    """Return sbatch options in order; a launcher that starts one process a node gets one slot
    with all the cores of its ranks.
    """
    if site.value.scheduler != "slurm":
        return ()
    ranks_per_slot = topology.tasks_per_node // launch.slots_per_node
    options: dict[str, Any] = {
        "job-name": settings["name"].value,
        "partition": _value(settings, "partition"),
        "account": _value(settings, "account"),
        "qos": _value(settings, "qos"),
        "constraint": _value(settings, "constraint"),
        "nodes": topology.nodes,
        "ntasks-per-node": launch.slots_per_node,
        "cpus-per-task": topology.cpus_per_task * ranks_per_slot,
        **_gpus(site, topology),
        "mem": _value(settings, "mem"),
        "time": _value(settings, "time"),
        "exclusive": "" if _value(settings, "exclusive") else None,
        # A requeued job must add to its log, not erase it.
        "open-mode": "append",
    }
    _check_words(settings)
    return tuple((key, str(value)) for key, value in options.items() if value is not None)


def _check_words(settings: dict[str, Setting]) -> None:
    """Refuse what sbatch would read as something else: its options know no quotes."""
    for key in ("partition", "account", "qos", "constraint"):
        value = _value(settings, key)
        if value is not None and not DIRECTIVE_VALUE.fullmatch(value):
            raise PlanError(
                f"{settings[key].origin}: {key} = {value!r} cannot be written as an #SBATCH value"
            )


def _value(settings: dict[str, Setting], key: str) -> Any:
    return settings[key].value if key in settings else None


def _gpus(site: Site, topology: Topology) -> dict[str, Any]:
    """Ask per node, so that every rank sees its node's GPUs and peer access works."""
    if not topology.gpus_per_node:
        return {}
    if site.value.gpu_request == "gres":
        return {"gres": f"gpu:{topology.gpus_per_node}"}
    return {"gpus-per-node": topology.gpus_per_node}
