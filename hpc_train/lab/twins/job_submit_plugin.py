"""Rules of a site that slurm.conf cannot express -> the job_submit plug-in of its twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpc_train.lab.twins.account_patterns import lua_patterns
from hpc_train.lab.twins.accounts import ACCOUNT, has_accounting
from hpc_train.lab.twins.partitions import (
    default_queue,
    features,
    queue_name,
    queues,
    twin_partitions,
)
from hpc_train.model.partition import ANY, Bound, Partition, Qos
from hpc_train.model.site import SiteProfile
from hpc_train.model.units import Duration

_PLUGIN = Path(__file__).with_name("job_submit.lua")
_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_CORES = ("cpus-per-task", "cpus-per-gpu")
Queues = dict[str, tuple[Partition, ...]]


def job_submit(profile: SiteProfile) -> str:
    """Return job_submit.lua: the profile's limits as a table, then the code that applies them."""
    rules = {
        "site": profile.name,
        "default": default_queue(profile),
        "required": _required(profile),
        "forbidden": dict(_forbidden(profile)),
        "account_like": profile.account.example or profile.account.pattern or "NAME",
        "account_pattern": profile.account.pattern,
        "account_patterns": lua_patterns(profile.account.pattern or ".*"),
        "charged": ACCOUNT if has_accounting(profile) else None,
        "entries": [
            _entry(one, queues(profile)) for one in twin_partitions(profile) if profile.partitions
        ],
        "qos": [_qos(qos) for qos in profile.qos if qos.name != ANY],
    }
    return f"rules = {lua(rules)}\n\n{_PLUGIN.read_text(encoding='utf-8')}"


def lua(value: Any) -> str:
    """Return a value in Lua's notation."""
    if isinstance(value, Mapping):
        pairs = (f"[{lua(key)}] = {lua(item)}" for key, item in value.items() if item is not None)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"{{{', '.join(lua(item) for item in value)}}}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, int) else _quoted(str(value))


def _quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    return f'"{"".join(escapes.get(letter, letter) for letter in text)}"'


def _required(profile: SiteProfile) -> list[str]:
    account = ("account",) if profile.account.required else ()
    mem = ("mem",) if profile.mem_request == "required" else ()
    return list(dict.fromkeys((*profile.required, *account, *mem)))


def _forbidden(profile: SiteProfile) -> Iterator[tuple[str, str]]:
    if profile.mem_request == "forbidden":
        yield from ((option, "memory is given with the nodes, GPUs or cores") for option in _MEMORY)
    if profile.cpu_request == "forbidden":
        yield from ((option, "cores are given with the nodes or GPUs") for option in _CORES)
    yield from ((option.lstrip("-"), why) for option, why in profile.forbidden.items())


def _entry(partition: Partition, known: Queues) -> dict[str, Any]:
    select, queue = partition.select, queue_name(partition)
    # slurmctld enforces the limits of a partition that also exists in Slurm.
    shared = len(known[queue]) > 1 or bool(partition.bounds)
    return {
        **(_native(partition) if shared else {}),
        "name": partition.name,
        "any": partition.name == ANY and not (select and select.partition),
        "queue": queue,
        "features": features(partition),
        "qos": select.qos if select else None,
        "suffix": select.account_suffix if select else None,
        "most_nodes": partition.max_nodes or partition.nodes,
        "node_gpus": partition.gpus_per_node,
        "min_gpus": partition.min_gpus,
        "max_gpus": partition.max_gpus,
        "min_minutes": partition.min_time and partition.min_time // 60,
        "cpus_per_node": partition.cpus_per_node,
        "cpus_per_gpu": partition.cpus_per_gpu,
        "cpu_rule": partition.cpu_rule,
        "bounds": [_bound(bound) for bound in partition.bounds],
        "max_node_minutes": partition.max_node_minutes,
    }


def _native(partition: Partition) -> dict[str, Any]:
    """Return the limits in slurm.conf of a partition that no other shares."""
    return {
        "min_nodes": partition.min_nodes,
        "max_nodes": partition.max_nodes,
        "max_minutes": _minutes(partition.max_time),
        "nodes": partition.nodes,
        "gpus_per_node": partition.gpus_per_node,
    }


def _qos(qos: Qos) -> dict[str, Any]:
    """Return the limits of a QOS that slurmdbd does not enforce."""
    return {
        "name": qos.name,
        "default": qos.default,
        "partitions": {name: True for name in qos.partitions} or None,
        "max_node_minutes": qos.max_node_minutes,
    }


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "for_nodes": bound.nodes,
        "for_account": bound.account,
        "max_nodes": bound.max_nodes,
        "max_gpus": bound.max_gpus,
        "max_minutes": _minutes(bound.max_time),
    }


def _minutes(time: Duration | None) -> int | None:
    return None if time is None else -(-time // 60)
