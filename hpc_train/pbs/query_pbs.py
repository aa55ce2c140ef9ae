"""A live PBS -> LivePbs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.base.errors import ProbeError
from hpc_train.base.processes import Ask, ask
from hpc_train.pbs.live_pbs import LivePbs, PbsNode, PbsQueue

_JSON = ("-F", "json")
_TIMEOUT_S = 60.0


# What starts the ranks of a job on its nodes.
_STARTERS = ("mpiexec", "mpirun", "pbs_tmrsh")
_OPEN_MPI = ("Open MPI", "OpenRTE", "Open RTE", "PRRTE")


def starters(question: Ask = ask) -> list[str]:
    """Return what starts ranks on this machine; Open MPI's mpiexec is its mpirun, not Cray PALS."""
    found = [one for one in _STARTERS if shutil.which(one)]
    if "mpiexec" in found and any(
        word in question("mpiexec", "--version", timeout_s=10.0).text for word in _OPEN_MPI
    ):
        return [one for one in _STARTERS[1:] if one in ("mpirun", *found)]
    return found


def read_pbs(question: Ask = ask) -> LivePbs:
    """Query the server, its queues and its nodes; the nodes may be missing.

    Raises:
        ProbeError: server or queues cannot be read.
    """
    server = _must(question, ("qstat", "-B", "-f"), "Server")
    queues = _must(question, ("qstat", "-Q", "-f"), "Queue")
    nodes, problem = _entries(question, ("pbsnodes", "-a"), "nodes")
    name, attributes = next(iter(server.items()))
    kept = attributes.get("job_history_enable") == "True"
    return LivePbs(
        name=name,
        version=attributes.get("pbs_version", ""),
        default_queue=attributes.get("default_queue", ""),
        history=attributes.get("job_history_duration", "336:00:00") if kept else None,
        default=resources(attributes, "resources_default"),
        available=resources(attributes, "resources_available"),
        queues=tuple(_queue(name, one) for name, one in queues.items()),
        nodes=tuple(_node(name, one) for name, one in nodes.items()),
        unread=(f"could not be read: pbsnodes -a: {problem}",) if problem else (),
    )


def _must(question: Ask, argv: tuple[str, ...], key: str) -> Attributes:
    found, problem = _entries(question, argv, key)
    if problem:
        raise ProbeError(
            f"`{' '.join(argv)}`: {problem}",
            "run it on a login node where PBS's commands work",
        )
    return found


def _entries(question: Ask, argv: tuple[str, ...], key: str) -> tuple[Attributes, str]:
    """Return the entries of an answer, and why there are none; broken JSON is asked for as text."""
    answer = question(*argv, *_JSON, timeout_s=_TIMEOUT_S)
    found = None if answer.problem else from_json(answer.text, key)
    if not found:
        answer = question(*argv, timeout_s=_TIMEOUT_S)
        found = from_text(answer.text, key)
    return found, "" if found else answer.problem or "an unknown format"


def _queue(name: str, attributes: Mapping[str, str]) -> PbsQueue:
    routes = attributes.get("route_destinations", "")
    return PbsQueue(
        name=name,
        open="True" == attributes.get("enabled") == attributes.get("started"),
        hidden=attributes.get("from_route_only") == "True",
        # A destination may be a queue of another server: NAME@SERVER.
        destinations=tuple(one.partition("@")[0].strip() for one in routes.split(",") if one),
        most=resources(attributes, "resources_max"),
        least=resources(attributes, "resources_min"),
        default=resources(attributes, "resources_default"),
        chunk=resources(attributes, "default_chunk"),
    )


def _node(name: str, attributes: Mapping[str, str]) -> PbsNode:
    own = resources(attributes, "resources_available")
    return PbsNode(
        name=name,
        host=own.get("host") or name,
        resources=own,
        queue=attributes.get("queue", ""),
        sharing=attributes.get("sharing", ""),
    )


# Output of PBS's `qstat -Bf`, `qstat -Qf` and `pbsnodes -a` -> attributes by name.
#
# As JSON (`-F json`), which some servers write broken (openpbs 1255, 2541), or as text.

Attributes = dict[str, dict[str, str]]
# The key of the JSON -> what a text begins an entry with.
_HEADS = {"Server": "Server: ", "Queue": "Queue: ", "nodes": ""}


def from_json(text: str, key: str) -> Attributes | None:
    """Return name -> attributes, `resources_max.walltime` for nested ones; None if it is no JSON.

    `key` is `Server`, `Queue` or `nodes`.
    """
    try:
        answer = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    found = answer.get(key, {}) if isinstance(answer, dict) else None
    if not isinstance(found, dict):
        return None
    if any(not isinstance(one, dict) for one in found.values()):
        # Some versions write the attributes of the server without its name.
        found = {str(answer.get("pbs_server", "pbs")): found}
    # The version is beside the entries, and in newer versions an attribute of the server as well.
    known = {"pbs_version": str(answer["pbs_version"])} if "pbs_version" in answer else {}
    own = known if key == "Server" else {}
    return {str(name): {**own, **dict(_flat(one))} for name, one in found.items()}


def _flat(attributes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", str(one)) for part, one in value.items())
        else:
            yield name, str(value)


def from_text(text: str, key: str) -> Attributes:
    """Return name -> attributes of the output without `-F json`.

    A long value continues on lines that begin with a tab.
    """
    head = _HEADS[key]
    found: Attributes = {}
    own: dict[str, str] = {}
    for line in text.replace("\n\t", "").splitlines():
        name, sign, value = line.strip().partition(" = ")
        if sign and line[:1].isspace():
            own[name] = value
        elif line.strip() and not line[:1].isspace() and line.startswith(head):
            own = found.setdefault(line.removeprefix(head).strip(), {})
    return found


def resources(attributes: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the resources of a kind: `resources_max`, `resources_available`, `default_chunk`."""
    start = f"{kind}."
    return {
        name.removeprefix(start): value
        for name, value in attributes.items()
        if name.startswith(start)
    }
