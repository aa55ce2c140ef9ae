"""Keys and values of torchrun and sbatch in a job file -> the keys of the job that say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.base.errors import SpecError
from hpc_train.base.value import Sourced
from hpc_train.base.yamlfile import lookup

_RANGE = re.compile(r"(\d{1,6}):(\d{1,6})")
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
