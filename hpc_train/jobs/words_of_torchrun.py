"""Keys and values of torchrun and sbatch in a job file -> the keys of the job that say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.base.decode import keys_of
from hpc_train.base.errors import SpecError
from hpc_train.base.value import Sourced
from hpc_train.base.yamlfile import lookup
from hpc_train.jobs.job import Resources

_RANGE = re.compile(r"(\d{1,6}):(\d{1,6})")
# A word for a number of resources elsewhere -> the key of a job.
_WORDS = {
    "gpu": "gpus_per_node",
    "gpus": "gpus_per_node",
    "gres": "gpus_per_node",
    "num_gpus": "gpus_per_node",
    "num_nodes": "nodes",
    "ntasks": "tasks_per_node",
    "tasks": "tasks_per_node",
    "ntasks_per_node": "tasks_per_node",
    "nproc_per_node": "tasks_per_node",
    "cpus": "cpus_per_task",
    "memory": "mem",
    "walltime": "time",
    "time_limit": "time",
}
_NODE_KEYS = ("nnodes", "resources.nnodes", "elastic.nnodes", "resources.nodes")
_RESTARTS = (
    "elastic: {max_restarts: 3} restarts ranks inside a job of torchrun, "
    "lifecycle: {max_restarts: 3} queues the job again"
)
_QUEUE_AGAIN = "lifecycle: {} queues the job again: hpctrain help restart"
_LEAD = "signal_before_end: 5m, beside lifecycle"
_HINTS = {
    "max_restarts": _RESTARTS,
    "requeue": _QUEUE_AGAIN,
    "resubmit_on": "lifecycle: {requeue_on: [75]}",
    "lifecycle.requeue": _QUEUE_AGAIN,
    "lifecycle.resubmit_on": "lifecycle: {requeue_on: [75]}",
    "lifecycle.signal": _LEAD,
    "lifecycle.signal_lead": _LEAD,
    "lifecycle.signal_before_end": _LEAD,
}


def check_other_words(data: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Refuse a range of nodes, and other words of torchrun and sbatch, with the job's own keys.

    Raises:
        SpecError: the first one, with its place.
    """
    for key, why, hint in _found(data):
        place = Sourced(value=None, origins=origins).near(key)
        raise SpecError(f"{place}: {key}: {why}", hint)


def _found(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for key in _NODE_KEYS:
        text = str(lookup(data, key) or "")
        if match := _RANGE.fullmatch(text):
            least, most = match.groups()
            why = f"{text} is a range of torchrun; a job requests the most nodes it may use"
            hint = f"resources: {{nodes: {most}}} with elastic: {{min_nodes: {least}}}"
            yield key, why, hint
        elif text and key.endswith("nnodes"):
            yield (
                key,
                "it is torchrun's name of the nodes of a job",
                f"resources: {{nodes: {text}}}",
            )
    for key, hint in _HINTS.items():
        if lookup(data, key) is not None:
            yield key, "a job has no such key", hint
    resources = data.get("resources")
    yield from _outside(data)
    for key, value in resources.items() if isinstance(resources, dict) else ():
        if ours := _WORDS.get(key.replace("-", "_")):
            yield f"resources.{key}", f"write resources.{ours}", f"{ours}: {value}{_each(ours)}"


def _outside(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the keys of `resources` that stand beside it, all at once."""
    found = {}
    for key in data:
        word = key.replace("-", "_")
        if (ours := word if word in keys_of(Resources) else _WORDS.get(word)) and word != "tasks":
            found[ours] = key
    if found:
        first = next(iter(found))
        pairs = ", ".join(f"{ours}: {data[key]}" for ours, key in found.items())
        why = f"write {', '.join(f'resources.{ours}' for ours in found)}"
        yield found[first], why, f"resources: {{{pairs}}}{_each(first)}"


def _each(key: str) -> str:
    """Return what a key counts, as a comment; programs also count those of the whole job."""
    return "  # on each node" * key.endswith("_per_node")
