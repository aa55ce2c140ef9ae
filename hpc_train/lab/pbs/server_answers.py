"""What the small PBS says of itself: `qstat -B`, `qstat -Q` and `pbsnodes`, as OpenPBS 23.06."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.lab.pbs.array_range import MOST_SUBJOBS
from hpc_train.lab.pbs.command_answer import CommandAnswer
from hpc_train.lab.pbs.job import SERVER, node_name
from hpc_train.lab.pbs.job_table import JobTable

QUEUE = "workq"
VERSION = "23.06.06"
_STATES = ("Transit", "Queued", "Held", "Waiting", "Running", "Exiting", "Begun")
_LETTERS = {"Q": "Queued", "H": "Held", "R": "Running", "E": "Exiting", "B": "Begun"}
# Limit of its queue [s], which qsub enforces.
MOST_S = 3600


def server_answer(
    table: JobTable, words: Sequence[str], *, history: bool, broken: bool
) -> CommandAnswer | None:
    """Answer `qstat -Bf` and `qstat -Qf`, as JSON or text; None for a question on jobs."""
    letters = "".join(word[1:] for word in words if word.startswith("-"))
    count = Counter(_LETTERS.get(job.state, "") for job in table.jobs.values() if job.index is None)
    counts = "".join(f"{state}:{count[state]} " for state in _STATES)
    state = {"total_jobs": sum(count[one] for one in _STATES), "state_count": counts}
    if "B" in letters:
        found = {SERVER: _server(state, history=history)}
        return _answer("Server", found, letters, broken=broken)
    if "Q" in letters:
        return _answer("Queue", {QUEUE: _queue(state)}, letters, broken=broken)
    return None


def nodes_answer(table: JobTable, words: Sequence[str]) -> CommandAnswer:
    """Answer `pbsnodes -a`, as JSON or text."""
    letters = "".join(word[1:] for word in words if word.startswith("-"))
    names = [node_name(number) for number in range(table.size.nodes)]
    return _answer("nodes", {name: _node(name, table) for name in names}, letters)


def _server(state: Mapping[str, Any], *, history: bool) -> dict[str, Any]:
    kept = {"job_history_enable": "True", "job_history_duration": "336:00:00"} if history else {}
    return {
        "server_state": "Active",
        "server_host": SERVER,
        "scheduling": "True",
        **state,
        "default_queue": QUEUE,
        "query_other_jobs": "True",
        "resources_default": {"ncpus": 1},
        "default_chunk": {"ncpus": 1},
        "node_fail_requeue": 310,
        "max_array_size": MOST_SUBJOBS,
        **kept,
        "pbs_version": VERSION,
    }


def _queue(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "queue_type": "Execution",
        **state,
        "resources_max": {"walltime": "01:00:00"},
        "hasnodes": "True",
        "enabled": "True",
        "started": "True",
    }


def _node(name: str, table: JobTable) -> dict[str, Any]:
    size = table.size
    gpus = {"ngpus": size.ngpus} if size.ngpus else {}
    return {
        "Mom": name,
        "ntype": "PBS",
        "state": "free",
        "pcpus": size.ncpus,
        "resources_available": {
            "arch": "linux",
            "host": name,
            "mem": f"{size.mem >> 10}kb",
            "ncpus": size.ncpus,
            **gpus,
            "vnode": name,
        },
        "resources_assigned": {},
        "resv_enable": "True",
        "sharing": "default_shared",
    }


def _answer(
    key: str, found: Mapping[str, Any], letters: str, *, broken: bool = False
) -> CommandAnswer:
    if "F" in letters:
        whole = {"timestamp": int(time.time()), "pbs_version": VERSION, "pbs_server": SERVER}
        text = json.dumps({**whole, key: found}, indent="\t", separators=(",", ":\t"))
        # A value with a quote, as users' variables have it.
        text = text.replace('"state_count":\t"', '"state_count":\t""', 1) if broken else text
        return CommandAnswer(output=f"{text}\n")
    head = "" if key == "nodes" else f"{key}: "
    return CommandAnswer(output="".join(_text(f"{head}{name}", one) for name, one in found.items()))


def _text(head: str, attributes: Mapping[str, Any]) -> str:
    lines = [head]
    for name, value in attributes.items():
        if isinstance(value, dict):
            lines += [f"    {name}.{part} = {one}" for part, one in value.items()]
        else:
            lines.append(f"    {name} = {value}")
    return "\n".join(lines) + "\n\n"
